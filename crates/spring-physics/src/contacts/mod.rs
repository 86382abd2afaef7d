//! Contacts: which surfaces can meet, where they do, and the impulses that part them.
//!
//! Surfaces are spheres and capsules of links, the floor, and boxes of the world. Two of them can meet if their
//! [`Surface`]s say so and they belong to different links of which neither is the other's parent. A capsule meets the
//! floor with both its ends; boxes are described in [`narrow`].

mod narrow;
mod walls;

use crate::{
    algebra::Vector,
    compiled::{Compiled, InverseInertia},
    lanes::Lanes,
    model::Model,
    real::Real,
    spec::{Compatibility, Shape, Surface},
    step::{GROUP, Work},
};
use narrow::{Contact, Cuboid, ball_ball, ball_box, ball_floor, capsule_box, of_segments, on_segment};
use walls::Walls;

/// What can meet.
#[derive(Clone, Debug)]
pub(crate) struct Contacts<F> {
    geoms: Vec<TouchingGeom<F>>,
    floor_height: F,
    /// Geoms that meet the floor, with friction.
    on_floor: Vec<(usize, F)>,
    pairs: Vec<Pair<F>>,
    walls: Walls<F>,
    /// `1 + elasticity`.
    bounce: F,
    /// `baumgarte / dt`.
    push: F,
    /// Keeps nearest points of segments from a division by zero.
    soft: F,
    /// Stands for the inverse inertia of each link, where brax's slip is kept.
    slips: Vec<Slip<F>>,
}

#[derive(Clone, Debug)]
struct TouchingGeom<F> {
    link: usize,
    from: [F; 3],
    /// The other end of a capsule.
    to: Option<[F; 3]>,
    radius: F,
}

#[derive(Clone, Debug)]
struct Pair<F> {
    first: usize,
    second: usize,
    friction: F,
}

/// One element of the inverse inertias of all links, stacked and flattened, in world axes.
#[derive(Clone, Copy, Debug)]
enum Slip<F> {
    Constant(F),
    Element { link: usize, row: usize, column: usize },
}

/// Where geoms are, and the sums of a step.
pub(crate) struct Scratch<N> {
    ends: Vec<[Vector<N>; 2]>,
    sums: Vec<Sums<N>>,
    touched: bool,
}

#[derive(Clone, Copy)]
struct Sums<N> {
    impulse: Vector<N>,
    twist: Vector<N>,
    count: N,
}

impl<F: Real> Contacts<F> {
    pub fn new(model: &Model) -> Self {
        let real = F::from_f64;
        let links = model.links.iter().enumerate();
        let all: Vec<(usize, Shape, Surface)> =
            links.flat_map(|(i, link)| link.geoms.iter().map(move |geom| (i, geom.shape, geom.surface))).collect();
        let related =
            |a: usize, b: usize| a == b || model.links[a].parent == Some(b) || model.links[b].parent == Some(a);
        let meets_world = |surface: Surface| {
            model.floor.is_some_and(|floor| surface.touches(floor.surface))
                || model.blocks.iter().any(|block| surface.touches(block.surface))
        };
        let meets = |(i, _, surface): &(usize, Shape, Surface)| {
            meets_world(*surface) || all.iter().any(|(j, _, other)| !related(*i, *j) && surface.touches(*other))
        };
        let touching: Vec<(usize, Shape, Surface)> = all.iter().filter(|geom| meets(geom)).copied().collect();
        let mut pairs = Vec::new();
        let mut on_floor = Vec::new();
        for (first, (i, _, surface)) in touching.iter().enumerate() {
            if let Some(floor) = model.floor.filter(|floor| surface.touches(floor.surface)) {
                on_floor.push((first, real(surface.friction.max(floor.surface.friction))));
            }
            for (second, (j, _, other)) in touching.iter().enumerate().skip(first + 1) {
                if !related(*i, *j) && surface.touches(*other) {
                    pairs.push(Pair { first, second, friction: real(surface.friction.max(other.friction)) });
                }
            }
        }
        let shapes: Vec<(Shape, Surface)> = touching.iter().map(|(_, shape, surface)| (*shape, *surface)).collect();
        let slips = if model.options.compatibility == Compatibility::Brax { slips(model) } else { Vec::new() };
        Self {
            walls: Walls::new(model, &shapes),
            geoms: touching
                .iter()
                .map(|(link, shape, _)| match *shape {
                    Shape::Sphere { center, radius } => {
                        TouchingGeom { link: *link, from: center.map(real), to: None, radius: real(radius) }
                    }
                    Shape::Capsule { from, to, radius } => {
                        TouchingGeom { link: *link, from: from.map(real), to: Some(to.map(real)), radius: real(radius) }
                    }
                })
                .collect(),
            floor_height: real(model.floor.map_or(0.0, |floor| floor.height)),
            on_floor,
            pairs,
            bounce: real(1.0 + model.options.elasticity),
            push: real(model.options.baumgarte / model.options.dt),
            soft: real(if model.options.compatibility == Compatibility::Brax { 1e-6 } else { 1e-12 }),
            slips,
        }
    }

    /// Room for the geoms and links of the model.
    pub fn scratch<N: Lanes<Real = F>>(&self, zero: Vector<N>) -> Scratch<N> {
        Scratch { ends: vec![[zero; 2]; self.geoms.len()], sums: Vec::new(), touched: false }
    }

    /// Sums up the impulses of all contacts at the places of the links before the step and their velocities so far.
    #[inline(always)]
    pub fn resolve<N: Lanes<Real = F>>(&self, compiled: &Compiled<F>, work: &Work<N>, scratch: &mut Scratch<N>) {
        scratch.touched = false;
        let world = compiled.links.len();
        let mut g = 0;
        while g < self.geoms.len() {
            let geom = &self.geoms[g];
            let frame = &work.derived[geom.link];
            let from = frame.origin + frame.axes.of(geom.from);
            let to = if let Some(to) = geom.to { frame.origin + frame.axes.of(to) } else { from };
            scratch.ends[g] = [from, to];
            g += 1;
        }
        let like = work.moving[0].center.x;
        let mut k = 0;
        while k < self.on_floor.len() {
            let (g, friction) = self.on_floor[k];
            let geom = &self.geoms[g];
            let (radius, height) = (like.like(geom.radius), like.like(self.floor_height));
            let friction = like.like(friction);
            let ends = scratch.ends[g];
            let count = 1 + usize::from(geom.to.is_some());
            let mut end = 0;
            while end < count {
                let contact = ball_floor(ends[end], radius, height);
                self.part(compiled, work, scratch, [geom.link, world], contact, friction);
                end += 1;
            }
            k += 1;
        }
        let mut k = 0;
        while k < self.pairs.len() {
            let Pair { first, second, friction } = self.pairs[k];
            let (a, b) = (&self.geoms[first], &self.geoms[second]);
            let ([a_from, a_to], [b_from, b_to]) = (scratch.ends[first], scratch.ends[second]);
            let soft = like.like(self.soft);
            let (at, other) = match (a.to.is_some(), b.to.is_some()) {
                (false, false) => (a_from, b_from),
                (false, true) => (a_from, on_segment(a_from, b_from, b_to, soft)),
                (true, false) => (on_segment(b_from, a_from, a_to, soft), b_from),
                (true, true) => of_segments((a_from, a_to), (b_from, b_to), soft),
            };
            let contact = ball_ball(at, like.like(a.radius), other, like.like(b.radius));
            self.part(compiled, work, scratch, [a.link, b.link], contact, like.like(friction));
            k += 1;
        }
        let mut k = 0;
        while k < self.walls.geoms.len() {
            self.meet_walls(compiled, work, scratch, k);
            k += 1;
        }
    }

    /// Contacts of one geom with the boxes near it, each lane with its own.
    #[inline(always)]
    fn meet_walls<N: Lanes<Real = F>>(
        &self,
        compiled: &Compiled<F>,
        work: &Work<N>,
        scratch: &mut Scratch<N>,
        k: usize,
    ) {
        let token = work.moving[0].center.x.token();
        let wall_geom = &self.walls.geoms[k];
        let geom = &self.geoms[wall_geom.geom];
        let [from, to] = scratch.ends[wall_geom.geom];
        let half = from.x.constant(0.5);
        let (mut xs, mut ys) = ([F::default(); GROUP], [F::default(); GROUP]);
        ((from.x + to.x) * half).store(&mut xs[..N::WIDTH]);
        ((from.y + to.y) * half).store(&mut ys[..N::WIDTH]);
        let mut near: [&[u32]; GROUP] = [&[]; GROUP];
        let mut most = 0;
        let mut lane = 0;
        while lane < N::WIDTH {
            near[lane] = self.walls.near(xs[lane], ys[lane]);
            most = most.max(near[lane].len());
            lane += 1;
        }
        let mut slot = 0;
        while slot < most {
            // A lane without a box at this slot has one of no size that is far below.
            let (nowhere, zero) = (F::from_f64(-1e6), F::default());
            let mut numbers = [[zero; GROUP]; 6];
            numbers[2] = [nowhere; GROUP];
            let mut friction = [zero; GROUP];
            let mut lane = 0;
            while lane < N::WIDTH {
                if let Some(&index) = near[lane].get(slot) {
                    let index = index as usize;
                    if wall_geom.friction[index] >= zero {
                        let mut n = 0;
                        while n < 6 {
                            numbers[n][lane] = self.walls.boxes[index][n];
                            n += 1;
                        }
                        friction[lane] = wall_geom.friction[index];
                    }
                }
                lane += 1;
            }
            let [x, y, z, a, b, c] = numbers;
            let load = |lanes: &[F; GROUP]| N::load(token, &lanes[..N::WIDTH]);
            let cuboid = Cuboid {
                center: Vector { x: load(&x), y: load(&y), z: load(&z) },
                half: Vector { x: load(&a), y: load(&b), z: load(&c) },
            };
            let links = [geom.link, compiled.links.len()];
            let radius = N::splat(token, geom.radius);
            let friction = load(&friction);
            if geom.to.is_some() {
                let [first, second] = capsule_box(from, to, radius, cuboid, N::splat(token, self.soft));
                self.part(compiled, work, scratch, links, first, friction);
                self.part(compiled, work, scratch, links, second, friction);
            } else {
                self.part(
                    compiled,
                    work,
                    scratch,
                    links,
                    ball_box(from, radius, cuboid, N::splat(token, self.soft)),
                    friction,
                );
            }
            slot += 1;
        }
    }

    /// Adds the impulse of one contact to both links, of which the second may be the world.
    #[inline(always)]
    fn part<N: Lanes<Real = F>>(
        &self,
        compiled: &Compiled<F>,
        work: &Work<N>,
        scratch: &mut Scratch<N>,
        [first, second]: [usize; 2],
        contact: Contact<N>,
        friction: N,
    ) {
        let Contact { distance, normal, position } = contact;
        let token = distance.token();
        let zero = distance.constant(0.0);
        let inside = distance.less(zero);
        if !N::any(token, inside) {
            return;
        }
        let world = compiled.links.len();
        let moving = &work.moving[first];
        let arm = position - moving.center;
        let mut slip = moving.velocity + moving.angular.cross(arm);
        let mut inverse_mass = N::splat(token, compiled.links[first].inverse_mass);
        let mut other_arm = arm;
        if second != world {
            let moving = &work.moving[second];
            other_arm = position - moving.center;
            slip = slip - (moving.velocity + moving.angular.cross(other_arm));
            inverse_mass = inverse_mass + N::splat(token, compiled.links[second].inverse_mass);
        }
        // Velocity along a direction that a unit impulse in it brings by turning the links.
        let turning = |direction: Vector<N>| {
            let one = self.turned(compiled, work, first, arm.cross(direction)).cross(arm).dot(direction);
            if second == world {
                one
            } else {
                one + self.turned(compiled, work, second, other_arm.cross(direction)).cross(other_arm).dot(direction)
            }
        };
        let approach = normal.dot(slip);
        let strength = -(approach * self.bounce + distance * self.push) / (inverse_mass + turning(normal));
        let active = N::and(token, inside, N::and(token, approach.less(zero), zero.less(strength)));
        if !N::any(token, active) {
            return;
        }
        let sliding = slip - normal.scale(approach);
        let speed = sliding.norm();
        let direction = sliding.scale(distance.constant(1.0) / (speed + distance.constant(1e-6)));
        let drag = (speed / (inverse_mass + turning(direction))).min(friction * strength);
        let dragged = N::and(token, active, distance.constant(1e-3).less(speed));
        let impulse = normal.scale(strength).only(active) - direction.scale(drag).only(dragged);

        if !scratch.touched {
            scratch.touched = true;
            let none = Vector::splat(token, [F::default(); 3]);
            scratch.sums.clear();
            scratch.sums.resize(world, Sums { impulse: none, twist: none, count: zero });
        }
        let counted = distance.constant(1.0).only(active);
        let sums = &mut scratch.sums[first];
        sums.impulse = sums.impulse + impulse;
        sums.twist = sums.twist + arm.cross(impulse).only(active);
        sums.count = sums.count + counted;
        if second != world {
            let sums = &mut scratch.sums[second];
            sums.impulse = sums.impulse - impulse;
            sums.twist = sums.twist - other_arm.cross(impulse).only(active);
            sums.count = sums.count + counted;
        }
    }

    /// The angular velocity that an angular impulse brings to a link, as the denominators of contacts see it.
    #[inline(always)]
    fn turned<N: Lanes<Real = F>>(
        &self,
        compiled: &Compiled<F>,
        work: &Work<N>,
        link: usize,
        twist: Vector<N>,
    ) -> Vector<N> {
        if compiled.exact {
            return compiled.links[link].inverse_inertia.of(work.derived[link].axes, twist);
        }
        match self.slips[link] {
            Slip::Constant(value) => twist.times(value),
            Slip::Element { link, row, column } => {
                let token = twist.x.token();
                let unit = |k: usize| {
                    let value = |i: usize| F::from_f64(if i == k { 1.0 } else { 0.0 });
                    Vector::splat(token, [value(0), value(1), value(2)])
                };
                let axes = work.derived[link].axes;
                twist.scale(compiled.links[link].inverse_inertia.of(axes, unit(column)).dot(unit(row)))
            }
        }
    }
}

impl<N: Lanes> Scratch<N> {
    /// Changes of a link's velocity and angular velocity: its impulses, divided by how many they are.
    #[inline(always)]
    pub fn change(&self, compiled: &Compiled<N::Real>, work: &Work<N>, i: usize) -> (Vector<N>, Vector<N>) {
        if !self.touched {
            let zero = Vector::splat(work.moving[i].center.x.token(), [N::Real::default(); 3]);
            return (zero, zero);
        }
        let Sums { impulse, twist, count } = self.sums[i];
        let share = count.constant(1.0) / count.max(count.constant(1.0));
        let link = &compiled.links[i];
        let spin = link.inverse_inertia.of(work.derived[i].axes, twist.scale(share));
        (impulse.scale(share).times(link.inverse_mass), spin)
    }
}

/// For each link the element that brax takes for its inverse inertia.
fn slips<F: Real>(model: &Model) -> Vec<Slip<F>> {
    let element = |index: usize| {
        let (link, row, column) = (index / 9, index % 9 / 3, index % 3);
        match InverseInertia::<F>::new(&model.bodies[link].inverse_inertia) {
            InverseInertia::Even(value) => Slip::Constant(if row == column { value } else { F::default() }),
            InverseInertia::Tensor(_) => Slip::Element { link, row, column },
        }
    };
    (0..model.links.len()).map(element).collect()
}
