//! Vectors, rotations and quaternions whose entries are [`Lanes`].

use std::ops::{Add, Neg, Sub};

use crate::lanes::Lanes;

#[derive(Clone, Copy)]
pub(crate) struct Vector<N> {
    pub x: N,
    pub y: N,
    pub z: N,
}

impl<N: Lanes> Add for Vector<N> {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self { x: self.x + other.x, y: self.y + other.y, z: self.z + other.z }
    }
}

impl<N: Lanes> Sub for Vector<N> {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self { x: self.x - other.x, y: self.y - other.y, z: self.z - other.z }
    }
}

impl<N: Lanes> Neg for Vector<N> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self { x: -self.x, y: -self.y, z: -self.z }
    }
}

impl<N: Lanes> Vector<N> {
    #[inline(always)]
    pub fn splat(token: N::Token, value: [N::Real; 3]) -> Self {
        Self { x: N::splat(token, value[0]), y: N::splat(token, value[1]), z: N::splat(token, value[2]) }
    }

    #[inline(always)]
    pub fn scale(self, by: N) -> Self {
        Self { x: self.x * by, y: self.y * by, z: self.z * by }
    }

    #[inline(always)]
    pub fn times(self, by: N::Real) -> Self {
        Self { x: self.x * by, y: self.y * by, z: self.z * by }
    }

    #[inline(always)]
    pub fn dot(self, other: Self) -> N {
        self.x * other.x + self.y * other.y + self.z * other.z
    }

    #[inline(always)]
    pub fn cross(self, other: Self) -> Self {
        Self {
            x: self.y * other.z - self.z * other.y,
            y: self.z * other.x - self.x * other.z,
            z: self.x * other.y - self.y * other.x,
        }
    }

    #[inline(always)]
    pub fn norm(self) -> N {
        self.dot(self).sqrt()
    }

    #[inline(always)]
    pub fn only(self, mask: N::Mask) -> Self {
        Self { x: self.x.only(mask), y: self.y.only(mask), z: self.z.only(mask) }
    }

    #[inline(always)]
    pub fn select(mask: N::Mask, a: Self, b: Self) -> Self {
        Self { x: N::select(mask, a.x, b.x), y: N::select(mask, a.y, b.y), z: N::select(mask, a.z, b.z) }
    }
}

/// A unit quaternion `w, x, y, z`.
#[derive(Clone, Copy)]
pub(crate) struct Quaternion<N> {
    pub w: N,
    pub v: Vector<N>,
}

impl<N: Lanes> Quaternion<N> {
    /// Turned by `half_angle * 2` (an angular velocity in world axes times a short time) and normalised.
    #[inline(always)]
    pub fn advanced(self, half_angle: Vector<N>) -> Self {
        let w = self.w - half_angle.dot(self.v);
        let v = self.v + half_angle.scale(self.w) + half_angle.cross(self.v);
        let norm = (w * w + v.dot(v)).sqrt();
        let inverse = norm.constant(1.0) / norm;
        Self { w: w * inverse, v: v.scale(inverse) }
    }

    /// The columns of its rotation matrix.
    #[inline(always)]
    pub fn rotation(self) -> Rotation<N> {
        let (w, Vector { x, y, z }) = (self.w, self.v);
        let (x2, y2, z2) = (x + x, y + y, z + z);
        let (wx, wy, wz) = (w * x2, w * y2, w * z2);
        let (xx, xy, xz) = (x * x2, x * y2, x * z2);
        let (yy, yz, zz) = (y * y2, y * z2, z * z2);
        let one = w.constant(1.0);
        Rotation {
            x: Vector { x: one - (yy + zz), y: xy + wz, z: xz - wy },
            y: Vector { x: xy - wz, y: one - (xx + zz), z: yz + wx },
            z: Vector { x: xz + wy, y: yz - wx, z: one - (xx + yy) },
        }
    }
}

/// A rotation matrix by columns: where it takes the axes.
#[derive(Clone, Copy)]
pub(crate) struct Rotation<N> {
    pub x: Vector<N>,
    pub y: Vector<N>,
    pub z: Vector<N>,
}

impl<N: Lanes> Rotation<N> {
    #[inline(always)]
    pub fn of(self, v: [N::Real; 3]) -> Vector<N> {
        self.x.times(v[0]) + self.y.times(v[1]) + self.z.times(v[2])
    }

    /// The vector whose rotation is `v`.
    #[inline(always)]
    pub fn back(self, v: Vector<N>) -> Vector<N> {
        Vector { x: self.x.dot(v), y: self.y.dot(v), z: self.z.dot(v) }
    }

    #[inline(always)]
    pub fn apply(self, v: Vector<N>) -> Vector<N> {
        self.x.scale(v.x) + self.y.scale(v.y) + self.z.scale(v.z)
    }
}
