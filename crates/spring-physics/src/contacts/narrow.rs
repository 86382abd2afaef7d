//! Where two surfaces touch: distance, normal and place of contact.
//!
//! Places lie halfway between the two surfaces. A capsule meets a box as in MJX (`capsule_convex`): with the two ends
//! of its segment, cut to the face that it is least inside of, or with the nearest edge of the box where that is the
//! shallower contact.

use crate::{algebra::Vector, lanes::Lanes};

/// One point of contact; the surfaces touch where `distance` is negative.
#[derive(Clone, Copy)]
pub(super) struct Contact<N> {
    pub distance: N,
    /// From the second surface towards the first.
    pub normal: Vector<N>,
    pub position: Vector<N>,
}

/// A box with its sides along the axes.
#[derive(Clone, Copy)]
pub(super) struct Cuboid<N> {
    pub center: Vector<N>,
    pub half: Vector<N>,
}

#[inline(always)]
pub(super) fn ball_floor<N: Lanes>(center: Vector<N>, radius: N, height: N) -> Contact<N> {
    let (zero, one) = (radius.constant(0.0), radius.constant(1.0));
    let distance = center.z - height - radius;
    let normal = Vector { x: zero, y: zero, z: one };
    let z = center.z - radius - distance * radius.constant(0.5);
    Contact { distance, normal, position: Vector { x: center.x, y: center.y, z } }
}

#[inline(always)]
pub(super) fn ball_ball<N: Lanes>(first: Vector<N>, radius: N, second: Vector<N>, other: N) -> Contact<N> {
    let apart = first - second;
    let length = apart.norm();
    let distance = length - radius - other;
    let normal = apart.scale(length.constant(1.0) / length.max(length.constant(1e-12)));
    let position = second + normal.scale(other + distance * length.constant(0.5));
    Contact { distance, normal, position }
}

/// The point of a segment that is nearest to `point`. `soft` keeps the division from zero; MJX takes 1e-6, which moves
/// the point towards `from` by a few micrometres.
#[inline(always)]
pub(super) fn on_segment<N: Lanes>(point: Vector<N>, from: Vector<N>, to: Vector<N>, soft: N) -> Vector<N> {
    let along = to - from;
    let share = clamp_share(along.dot(point - from) / (along.dot(along) + soft));
    from + along.scale(share)
}

/// The points of two segments that are nearest to each other: those of their lines cut to the segments, then one of
/// them again as the nearest to the other.
#[inline(always)]
pub(super) fn of_segments<N: Lanes>(
    (from, to): (Vector<N>, Vector<N>),
    (other_from, other_to): (Vector<N>, Vector<N>),
    soft: N,
) -> (Vector<N>, Vector<N>) {
    let (one, half) = (soft.constant(1.0), soft.constant(0.5));
    let (along, other_along) = (to - from, other_to - other_from);
    let (length, other_length) = (along.norm(), other_along.norm());
    let (direction, other_direction) = (along.scale(one / length), other_along.scale(one / other_length));
    let (reach, other_reach) = (length * half, other_length * half);
    let (middle, other_middle) = (from + direction.scale(reach), other_from + other_direction.scale(other_reach));
    let apart = middle - other_middle;
    let lean = direction.dot(other_direction);
    let (shift, other_shift) = (direction.dot(apart), other_direction.dot(apart));
    let at = (lean * other_shift - shift) / (one - lean * lean + soft);
    let other_at = other_shift + at * lean;
    let point = middle + direction.scale(at.max(-reach).min(reach));
    let other = other_middle + other_direction.scale(other_at.max(-other_reach).min(other_reach));
    let (again, other_again) = (on_segment(other, from, to, soft), on_segment(point, other_from, other_to, soft));
    let (gap, other_gap) = (again - other, other_again - point);
    let first = gap.dot(gap).less(other_gap.dot(other_gap));
    (Vector::select(first, again, point), Vector::select(first, other, other_again))
}

#[inline(always)]
fn clamp_share<N: Lanes>(share: N) -> N {
    share.max(share.constant(0.0)).min(share.constant(1.0))
}

#[inline(always)]
pub(super) fn ball_box<N: Lanes>(center: Vector<N>, radius: N, cuboid: Cuboid<N>, soft: N) -> Contact<N> {
    let (zero, half) = (radius.constant(0.0), radius.constant(0.5));
    let local = center - cuboid.center;
    let size = cuboid.half;
    let nearest = {
        let (at, half) = ([local.x, local.y, local.z], [size.x, size.y, size.z]);
        let nearest = |k: usize| {
            let (i, j) = ((k + 1) % 3, (k + 2) % 3);
            let (out, other_out) = (at[i].abs() - half[i], at[j].abs() - half[j]);
            let over_edge = N::and(radius.token(), zero.less(out), zero.less(other_out));
            // MJX walks the edge around the face that the ball is farther from, and its softened division falls short.
            let around = N::select(other_out.less(out), at[i] * at[j], -(at[i] * at[j]));
            let way = N::select(around.less(zero), radius.constant(-1.0), radius.constant(1.0));
            let length = half[k] + half[k];
            let share = clamp_share((half[k] + way * at[k]) * length / (length * length + soft));
            let on_edge = way * (length * share - half[k]);
            N::select(over_edge, on_edge, at[k].max(-half[k]).min(half[k]))
        };
        Vector { x: nearest(0), y: nearest(1), z: nearest(2) }
    };
    let apart = local - nearest;
    let length = apart.norm();
    let outside = zero.less(length);
    // A middle inside the box leaves through the nearest face.
    let depth = Vector { x: size.x - local.x.abs(), y: size.y - local.y.abs(), z: size.z - local.z.abs() };
    let one = radius.constant(1.0);
    let sign = |value: N| N::select(value.less(zero), -one, one);
    let least = depth.x.min(depth.y).min(depth.z);
    let (by_x, by_y) = (depth.y.min(depth.z).less(depth.x), depth.z.less(depth.y));
    let out = Vector {
        x: N::select(by_x, zero, sign(local.x)),
        y: N::select(by_x, N::select(by_y, zero, sign(local.y)), zero),
        z: N::select(by_x, N::select(by_y, sign(local.z), zero), zero),
    };
    let normal = Vector::select(outside, apart.scale(one / length), out);
    let distance = N::select(outside, length, -least) - radius;
    let surface = Vector::select(outside, nearest, local + out.scale(least));
    let position = cuboid.center + surface + normal.scale(distance * half);
    Contact { distance, normal, position }
}

/// Two contacts, of which one or both may be absent (at distance 1).
#[inline(always)]
pub(super) fn capsule_box<N: Lanes>(
    from: Vector<N>,
    to: Vector<N>,
    radius: N,
    cuboid: Cuboid<N>,
    soft: N,
) -> [Contact<N>; 2] {
    let token = radius.token();
    let (zero, one, half) = (radius.constant(0.0), radius.constant(1.0), radius.constant(0.5));
    let (a, b, size) = (from - cuboid.center, to - cuboid.center, cuboid.half);
    let (starts, ends, sizes) = ([a.x, a.y, a.z], [b.x, b.y, b.z], [size.x, size.y, size.z]);

    // The face that the capsule is least inside of.
    let mut support = radius.constant(-1e30);
    let mut face = [zero; 3];
    let mut face_size = zero;
    let mut axis = 0;
    while axis < 3 {
        let sides = [starts[axis].min(ends[axis]) - sizes[axis], (-starts[axis]).min(-ends[axis]) - sizes[axis]];
        let mut side = 0;
        while side < 2 {
            let this = sides[side] - radius;
            let better = support.less(this);
            support = support.max(this);
            let mut k = 0;
            while k < 3 {
                let value = if k != axis {
                    zero
                } else if side == 0 {
                    one
                } else {
                    -one
                };
                face[k] = N::select(better, value, face[k]);
                k += 1;
            }
            face_size = N::select(better, sizes[axis], face_size);
            side += 1;
        }
        axis += 1;
    }
    let away = Contact { distance: one, normal: Vector { x: zero, y: zero, z: one }, position: from };
    let supported = support.less(zero);
    if !N::any(token, supported) {
        return [away; 2];
    }
    let face_normal = Vector { x: face[0], y: face[1], z: face[2] };

    // The segment cut to the sides of that face.
    let skin = radius.constant(1e-6);
    let (mut first, mut last, mut bad) = (zero, one, zero);
    let mut axis = 0;
    while axis < 3 {
        let across = face[axis].abs().less(half);
        let mut side = 0;
        while side < 2 {
            let (start, end) = if side == 0 {
                (starts[axis] - sizes[axis], ends[axis] - sizes[axis])
            } else {
                (-starts[axis] - sizes[axis], -ends[axis] - sizes[axis])
            };
            let (start_out, end_out) = (N::and(token, across, skin.less(start)), N::and(token, across, skin.less(end)));
            bad = N::select(N::and(token, start_out, end_out), one, bad);
            let cut = clamp_share(start / (start - end));
            first = N::select(start_out, first.max(cut), first);
            last = N::select(end_out, last.min(cut), last);
            side += 1;
        }
        axis += 1;
    }
    bad = N::select(last.less(first), one, bad);
    let valid = N::and(token, supported, bad.less(half));
    let along = b - a;
    let on_face = |share: N| {
        let point = a + along.scale(share);
        let distance = face_normal.dot(point) - face_size - radius;
        let position = point - face_normal.scale(radius + distance * half);
        Contact { distance: N::select(valid, distance, one), normal: face_normal, position }
    };
    let (mut start, mut end) = (on_face(first), on_face(last));

    // The nearest edge.
    let mut nearest = radius.constant(1e30);
    let (mut edge_point, mut segment_point, mut in_front) = (a, a, zero);
    let mut axis = 0;
    while axis < 3 {
        let mut corner = 0;
        while corner < 4 {
            let sign = [if corner & 1 == 0 { one } else { -one }, if corner & 2 == 0 { one } else { -one }];
            let (second, third) = ((axis + 1) % 3, (axis + 2) % 3);
            let mut ends = [[zero; 3]; 2];
            let mut k = 0;
            while k < 2 {
                ends[k][axis] = if k == 0 { -sizes[axis] } else { sizes[axis] };
                ends[k][second] = sizes[second] * sign[0];
                ends[k][third] = sizes[third] * sign[1];
                k += 1;
            }
            let vector = |p: [N; 3]| Vector { x: p[0], y: p[1], z: p[2] };
            let (edge, segment) = of_segments((vector(ends[0]), vector(ends[1])), (a, b), soft);
            let apart = segment - edge;
            let square = apart.dot(apart);
            let better = square.less(nearest);
            nearest = nearest.min(square);
            edge_point = Vector::select(better, edge, edge_point);
            segment_point = Vector::select(better, segment, segment_point);
            let apart = [apart.x, apart.y, apart.z];
            let front = N::and(token, zero.less(apart[second] * sign[0]), zero.less(apart[third] * sign[1]));
            in_front = N::select(better, N::select(front, one, zero), in_front);
            corner += 1;
        }
        axis += 1;
    }
    let length = nearest.sqrt();
    let normal = (segment_point - edge_point).scale(one / length);
    let distance = length - radius;
    // Where both ends are inside the face, the edge has to be the shallower contact.
    let least = start.distance.max(end.distance);
    let bound = N::select(least.less(zero), least, -radius - one);
    let shallower = bound.less(distance);
    let leans = normal.dot(face_normal).abs().less(radius.constant(0.99));
    let apart = radius.constant(1e-6).less(nearest);
    let by_edge = N::and(token, N::and(token, shallower, distance.less(zero)), N::and(token, leans, apart));
    let by_edge = N::and(token, by_edge, N::and(token, half.less(in_front), supported));
    let position = edge_point + normal.scale(distance * half);
    start.distance = N::select(by_edge, distance, start.distance);
    start.normal = Vector::select(by_edge, normal, start.normal);
    start.position = cuboid.center + Vector::select(by_edge, position, start.position);
    end.distance = N::select(by_edge, one, end.distance);
    end.position = cuboid.center + end.position;
    [start, end]
}

#[cfg(test)]
mod tests;
