use proptest::prelude::*;
use pulp::Scalar;

use super::*;
use crate::lanes::F64s;

type Lane = F64s<Scalar>;

fn lane(value: f64) -> Lane {
    Lane::splat(Scalar::new(), value)
}

fn vector(v: [f64; 3]) -> Vector<Lane> {
    Vector::splat(Scalar::new(), v)
}

fn number(lane: Lane) -> f64 {
    let mut value = [0.0];
    lane.store(&mut value);
    value[0]
}

fn numbers(v: Vector<Lane>) -> [f64; 3] {
    [v.x, v.y, v.z].map(number)
}

fn between(a: [f64; 3], b: [f64; 3], share: f64) -> [f64; 3] {
    std::array::from_fn(|k| a[k] + share * (b[k] - a[k]))
}

fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

/// Signed distance of a point from a box about the origin.
fn from_box(p: [f64; 3], half: [f64; 3]) -> f64 {
    let outside: [f64; 3] = std::array::from_fn(|k| p[k].abs() - half[k]);
    let farthest = outside.into_iter().fold(f64::NEG_INFINITY, f64::max);
    if farthest < 0.0 { farthest } else { outside.iter().map(|x| x.max(0.0).powi(2)).sum::<f64>().sqrt() }
}

fn point(size: f64) -> impl Strategy<Value = [f64; 3]> {
    [-size..size, -size..size, -size..size]
}

const HALF: [f64; 3] = [1.0, 0.7, 0.4];

fn cuboid() -> Cuboid<Lane> {
    Cuboid { center: vector([0.0; 3]), half: vector(HALF) }
}

proptest! {
    #[test]
    fn nearest_points_of_segments_are_nearest(a in point(1.0), b in point(1.0), c in point(1.0), d in point(1.0)) {
        prop_assume!(distance(a, b) > 1e-3 && distance(c, d) > 1e-3);
        let (p, q) = of_segments((vector(a), vector(b)), (vector(c), vector(d)), lane(1e-12));
        let found = distance(numbers(p), numbers(q));
        for i in 0..=40 {
            for j in 0..=40 {
                let other = distance(between(a, b, f64::from(i) / 40.0), between(c, d, f64::from(j) / 40.0));
                prop_assert!(found <= other + 1e-9, "{found} is more than {other}");
            }
        }
    }

    #[test]
    fn a_ball_is_as_far_from_a_box_as_its_middle_says(center in point(1.5), radius in 0.05f64..0.4) {
        let contact = ball_box(vector(center), lane(radius), cuboid(), lane(1e-14));
        let (apart, normal) = (number(contact.distance), numbers(contact.normal));
        prop_assert!((apart - (from_box(center, HALF) - radius)).abs() < 1e-12);
        prop_assert!((distance(normal, [0.0; 3]) - 1.0).abs() < 1e-12);
        // Half the distance ahead of the contact is the surface of the ball, half of it behind that of the box.
        let at = numbers(contact.position);
        let of_ball: [f64; 3] = std::array::from_fn(|k| at[k] + 0.5 * apart * normal[k]);
        let of_box: [f64; 3] = std::array::from_fn(|k| at[k] - 0.5 * apart * normal[k]);
        prop_assert!((distance(of_ball, center) - radius).abs() < 1e-9);
        prop_assert!(from_box(of_box, HALF).abs() < 1e-9);
        // Moving along the normal leads away.
        let moved: [f64; 3] = std::array::from_fn(|k| center[k] + 1e-4 * normal[k]);
        prop_assert!(from_box(moved, HALF) > from_box(center, HALF));
    }

    #[test]
    fn a_capsule_touches_a_box_only_where_they_overlap(a in point(1.5), b in point(1.5), radius in 0.05f64..0.3) {
        prop_assume!(distance(a, b) > 1e-3);
        let contacts = capsule_box(vector(a), vector(b), lane(radius), cuboid(), lane(1e-12));
        let nearest = (0..=400)
            .map(|i| from_box(between(a, b, f64::from(i) / 400.0), HALF))
            .fold(f64::INFINITY, f64::min);
        let touching: Vec<_> = contacts.into_iter().filter(|c| number(c.distance) < 0.0).collect();
        if nearest > radius {
            prop_assert!(touching.is_empty(), "{} from the box", nearest - radius);
        }
        // A segment beside the box that comes nearer than the radius touches it, whichever feature is nearest; corners
        // are left out as in MJX.
        let outside: Vec<bool> = (0..3).map(|k| a[k].abs().min(b[k].abs()) > HALF[k] && a[k] * b[k] > 0.0).collect();
        let over_a_face = outside.iter().filter(|x| **x).count() == 1
            && (0..3).all(|k| outside[k] || (a[k].abs() < HALF[k] && b[k].abs() < HALF[k]));
        if over_a_face && nearest < radius - 0.01 {
            prop_assert!(!touching.is_empty());
            let deepest = touching.iter().map(|c| number(c.distance)).fold(0.0, f64::min);
            prop_assert!((deepest - (nearest - radius)).abs() < 1e-9, "{deepest}, expected {}", nearest - radius);
        }
        for contact in touching {
            prop_assert!((distance(numbers(contact.normal), [0.0; 3]) - 1.0).abs() < 1e-9);
            prop_assert!(from_box(numbers(contact.position), HALF) < 1e-9);
        }
    }
}

#[test]
fn a_capsule_across_an_edge_touches_it_there() {
    // Along x over the edge x = 1, z = 0.4 at 45 degrees.
    let contacts = capsule_box(vector([0.95, 0.0, 0.65]), vector([1.25, 0.0, 0.35]), lane(0.2), cuboid(), lane(1e-12));
    let [edge, none] = contacts.map(|c| number(c.distance));
    let gap = 0.1 * 2.0f64.sqrt();
    assert!((edge - (gap - 0.2)).abs() < 1e-9 && none > 0.0, "{edge}, {none}");
    let normal = numbers(contacts[0].normal);
    assert!(distance(normal, [0.5f64.sqrt(), 0.0, 0.5f64.sqrt()]) < 1e-9, "{normal:?}");
}
