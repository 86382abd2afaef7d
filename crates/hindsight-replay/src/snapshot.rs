//! A replay as a stream of bytes. It may be larger than what is left of the memory, so it is written and read in
//! pieces.
//!
//! The format, all numbers little-endian: 24 bytes that name it; the five sizes of the shape, the number of steps
//! pushed and the number of steps held, 64 bits each; states and actions slot by slot and trajectories environment by
//! environment, 32 bits each; a CRC-32 of everything before.

use std::io::{self, Read, Write};

use crc32fast::Hasher;

use crate::{Replay, ReplayError, ReplayShape};

/// Names the format and its version.
const MAGIC: [u8; 24] = *b"hindsight-replay v1     ";

/// Numbers that are turned into bytes at a time.
const PIECE: usize = 1 << 16;

impl Replay {
    /// Writes all that it holds.
    ///
    /// # Errors
    /// [`ReplayError::Io`] where the writer fails.
    pub fn snapshot(&self, to: &mut impl Write) -> Result<(), ReplayError> {
        let mut out = Checked { inner: to, crc: Hasher::new() };
        self.write(&mut out).map_err(|source| ReplayError::Io { action: "written", source })
    }

    fn write<W: Write>(&self, out: &mut Checked<&mut W>) -> io::Result<()> {
        out.write(&MAGIC)?;
        for number in self.numbers() {
            out.write(&number.to_le_bytes())?;
        }
        out.write_all(&self.states, f32::to_le_bytes)?;
        out.write_all(&self.actions, f32::to_le_bytes)?;
        for slots in &self.trajectories {
            out.write_all(slots, u32::to_le_bytes)?;
        }
        let crc = out.crc.clone().finalize();
        out.write(&crc.to_le_bytes())?;
        out.inner.flush()
    }

    /// Takes in what [`snapshot`](Self::snapshot) wrote, in place of what it holds, and reads no byte beyond its end.
    /// It must have the shape of the replay that was written.
    ///
    /// # Errors
    /// [`ReplayError::Io`] where the reader fails, [`ReplayError::Snapshot`] where the bytes are no snapshot, a damaged
    /// one or one of another shape. The replay is empty after a failure, but where its shape was
    /// the reason.
    pub fn restore(&mut self, from: &mut impl Read) -> Result<(), ReplayError> {
        let mut input = Checked { inner: from, crc: Hasher::new() };
        let (pushed, filled) = self.read_header(&mut input)?;
        self.clear();
        let result = self.read_tables(&mut input, filled);
        match result {
            Ok(()) => self.pushed = pushed,
            Err(_) => self.clear(),
        }
        result
    }

    /// The numbers of steps pushed and held.
    fn read_header<R: Read>(&self, input: &mut Checked<&mut R>) -> Result<(u64, usize), ReplayError> {
        let mut magic = [0; MAGIC.len()];
        input.read(&mut magic).map_err(failed)?;
        if magic != MAGIC {
            return Err(wrong("it does not begin as one; is it of another version?".to_owned()));
        }
        let expected = self.numbers();
        let mut found = [0; 7];
        for number in &mut found {
            let mut bytes = [0; 8];
            input.read(&mut bytes).map_err(failed)?;
            *number = u64::from_le_bytes(bytes);
        }
        if found[..5] != expected[..5] {
            let message = format!(
                "its shape (environments, steps, state, goal, action) is {:?} and not {:?}: give the same settings",
                &found[..5],
                &expected[..5]
            );
            return Err(wrong(message));
        }
        let ([.., pushed, filled], steps) = (found, self.shape.steps);
        if filled != pushed.min(steps as u64) {
            return Err(wrong(format!("it states {filled} steps held of {pushed} pushed, where {steps} fit")));
        }
        Ok((pushed, filled as usize))
    }

    fn read_tables<R: Read>(&mut self, input: &mut Checked<&mut R>, filled: usize) -> Result<(), ReplayError> {
        let ReplayShape { environments, state_len, action_len, .. } = self.shape;
        // At most the size of the shape, which was checked when it was made.
        let rows = filled * environments;
        input.read_all(&mut self.states, rows * state_len, f32::from_le_bytes).map_err(failed)?;
        input.read_all(&mut self.actions, rows * action_len, f32::from_le_bytes).map_err(failed)?;
        for slots in &mut self.trajectories {
            input.read_all(slots, filled, u32::from_le_bytes).map_err(failed)?;
        }
        let crc = input.crc.clone().finalize();
        let mut stated = [0; 4];
        input.read(&mut stated).map_err(failed)?;
        if u32::from_le_bytes(stated) != crc {
            return Err(wrong("its checksum does not fit: it is damaged".to_owned()));
        }
        Ok(())
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.states.clear();
        self.actions.clear();
        self.trajectories.iter_mut().for_each(Vec::clear);
        self.pushed = 0;
    }

    fn numbers(&self) -> [u64; 7] {
        let ReplayShape { environments, steps, state_len, goal_len, action_len } = self.shape;
        let sizes = [environments, steps, state_len, goal_len, action_len].map(|size| size as u64);
        let [a, b, c, d, e] = sizes;
        [a, b, c, d, e, self.pushed, self.filled() as u64]
    }
}

fn wrong(message: String) -> ReplayError {
    ReplayError::Snapshot { message }
}

fn failed(source: io::Error) -> ReplayError {
    match source.kind() {
        io::ErrorKind::UnexpectedEof => wrong("it ends too early".to_owned()),
        _ => ReplayError::Io { action: "read", source },
    }
}

/// A stream with a checksum of what went through it.
struct Checked<S> {
    inner: S,
    crc: Hasher,
}

impl<W: Write> Checked<&mut W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.crc.update(bytes);
        self.inner.write_all(bytes)
    }

    fn write_all<T: Copy>(&mut self, values: &[T], write: impl Fn(T) -> [u8; 4]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(PIECE.min(values.len()) * 4);
        for piece in values.chunks(PIECE) {
            bytes.clear();
            bytes.extend(piece.iter().flat_map(|&value| write(value)));
            self.write(&bytes)?;
        }
        Ok(())
    }
}

impl<R: Read> Checked<&mut R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.inner.read_exact(bytes)?;
        self.crc.update(bytes);
        Ok(())
    }

    /// Grows with what is there, so that a false size takes no memory.
    fn read_all<T>(&mut self, values: &mut Vec<T>, count: usize, read: impl Fn([u8; 4]) -> T) -> io::Result<()> {
        let mut bytes = vec![0; PIECE.min(count) * 4];
        while values.len() < count {
            let piece = PIECE.min(count - values.len());
            self.read(&mut bytes[..piece * 4])?;
            values.extend(bytes[..piece * 4].as_chunks::<4>().0.iter().map(|&chunk| read(chunk)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
