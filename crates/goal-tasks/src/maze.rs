//! Mazes as grids of text: walls, where an agent may start, where goals may lie.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The longest side of a grid, in cells.
const MAX_SIDE: usize = 256;

/// What a cell of a maze is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// `0`: free, and neither a start nor a goal.
    Free,
    /// `1`: a wall.
    Wall,
    /// `R`: free; agents start at its centre.
    Start,
    /// `G`: free; goals lie at its centre.
    Goal,
}

/// A rectangular grid of cells of equal size.
///
/// The text has one row of letters after the other, with `/` or line breaks between them: `1` wall, `0` free, `R`
/// start, `G` goal. The centre of the cell in row i and column j is `(i, j)` times the size of a cell: x comes from the
/// row.
///
/// ```
/// use goal_tasks::Maze;
/// let maze: Maze = "11111/1RGG1/111G1/1GGG1/11111".parse()?;
/// assert_eq!((maze.rows(), maze.columns()), (5, 5));
/// assert_eq!(maze.starts(), [(1, 1)]);
/// assert_eq!(maze.centre((1, 3), 4.0), [4.0, 12.0]);
/// # Ok::<(), goal_tasks::MazeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Maze {
    columns: usize,
    cells: Vec<Cell>,
}

/// Why a text is not a maze.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MazeError {
    /// A letter that means nothing.
    #[error("row {row}, column {column} of the maze is `{letter}`: write 0 (free), 1 (wall), R (start) or G (goal)")]
    Letter {
        /// Row, from 0.
        row: usize,
        /// Column, from 0.
        column: usize,
        /// The letter.
        letter: char,
    },
    /// Rows of different length.
    #[error("row {row} of the maze has {length} cells, but the first has {expected}: make all rows equally long")]
    Ragged {
        /// Row, from 0.
        row: usize,
        /// Its cells.
        length: usize,
        /// Cells of the first row.
        expected: usize,
    },
    /// Too many rows or columns.
    #[error("the maze has more than {MAX_SIDE} rows or columns: make it smaller")]
    TooLarge,
    /// No `R`.
    #[error("the maze has no start: mark one cell or more with R")]
    NoStart,
    /// No `G`.
    #[error("the maze has no goal: mark one cell or more with G")]
    NoGoal,
    /// An agent could leave the grid.
    #[error("row {row}, column {column} of the maze is at its border and free: surround the maze with walls (1)")]
    Open {
        /// Row, from 0.
        row: usize,
        /// Column, from 0.
        column: usize,
    },
    /// No way leads to a goal.
    #[error("the goal in row {row}, column {column} of the maze cannot be reached from every start: open a way")]
    Unreachable {
        /// Row of the goal, from 0.
        row: usize,
        /// Its column, from 0.
        column: usize,
    },
}

/// A box that stands on the floor, its sides along the axes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WallBox {
    /// Centre x, y, z.
    pub centre: [f64; 3],
    /// Half of its sides along x, y, z.
    pub half: [f64; 3],
}

impl Maze {
    /// Number of rows: cells along x.
    pub fn rows(&self) -> usize {
        self.cells.len() / self.columns
    }

    /// Number of columns: cells along y.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The cell in a row and a column; a wall outside of the grid.
    pub fn cell(&self, row: usize, column: usize) -> Cell {
        if column >= self.columns || row >= self.rows() {
            return Cell::Wall;
        }
        self.cells[row * self.columns + column]
    }

    /// Row and column of every start, row by row.
    pub fn starts(&self) -> Vec<(usize, usize)> {
        self.places(Cell::Start)
    }

    /// Row and column of every goal, row by row.
    pub fn goals(&self) -> Vec<(usize, usize)> {
        self.places(Cell::Goal)
    }

    /// Row and column of every wall, row by row.
    pub fn walls(&self) -> Vec<(usize, usize)> {
        self.places(Cell::Wall)
    }

    /// x and y of the centre of a cell, where cells have the side `size`.
    pub fn centre(&self, (row, column): (usize, usize), size: f64) -> [f64; 2] {
        [row as f64 * size, column as f64 * size]
    }

    /// x and y of the middle of the grid.
    pub fn middle(&self, size: f64) -> [f64; 2] {
        [(self.rows() - 1) as f64 * size / 2.0, (self.columns() - 1) as f64 * size / 2.0]
    }

    /// One box for each wall cell, `height` tall and standing on z = 0.
    pub fn boxes(&self, size: f64, height: f64) -> Vec<WallBox> {
        let half = [size / 2.0, size / 2.0, height / 2.0];
        let at = |place| {
            let [x, y] = self.centre(place, size);
            WallBox { centre: [x, y, height / 2.0], half }
        };
        self.walls().into_iter().map(at).collect()
    }

    /// Whether the point lies in a wall, or outside of the grid.
    pub fn blocked(&self, [x, y]: [f64; 2], size: f64) -> bool {
        let index = |value: f64| (value / size + 0.5).floor();
        let (row, column) = (index(x), index(y));
        // Written so that a NaN is blocked.
        if !(row >= 0.0 && column >= 0.0) {
            return true;
        }
        self.cell(row as usize, column as usize) == Cell::Wall
    }

    /// Steps from cell to cell on the shortest way from `from`, moving along rows and columns; `None` for walls and for
    /// cells to which no way leads. In the order of the cells, row by row.
    pub fn distances(&self, from: (usize, usize)) -> Vec<Option<u32>> {
        let mut distances = vec![None; self.cells.len()];
        if self.cell(from.0, from.1) == Cell::Wall {
            return distances;
        }
        distances[from.0 * self.columns + from.1] = Some(0);
        let (mut edge, mut steps) = (vec![from], 0);
        while !edge.is_empty() {
            steps += 1;
            let mut next = Vec::new();
            for (row, column) in edge {
                // Beyond 0 the index wraps around to one that is outside, which is a wall.
                let around = [
                    (row.wrapping_sub(1), column),
                    (row + 1, column),
                    (row, column.wrapping_sub(1)),
                    (row, column + 1),
                ];
                for (row, column) in around {
                    if self.cell(row, column) != Cell::Wall {
                        let place = row * self.columns + column;
                        if distances[place].is_none() {
                            distances[place] = Some(steps);
                            next.push((row, column));
                        }
                    }
                }
            }
            edge = next;
        }
        distances
    }

    fn places(&self, wanted: Cell) -> Vec<(usize, usize)> {
        let place = |index| (index / self.columns, index % self.columns);
        self.cells.iter().enumerate().filter(|(_, cell)| **cell == wanted).map(|(index, _)| place(index)).collect()
    }

    fn check(&self) -> Result<(), MazeError> {
        let (rows, columns) = (self.rows(), self.columns);
        for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
            let border = row == 0 || column == 0 || row + 1 == rows || column + 1 == columns;
            if border && self.cell(row, column) != Cell::Wall {
                return Err(MazeError::Open { row, column });
            }
        }
        let (starts, goals) = (self.starts(), self.goals());
        if starts.is_empty() {
            return Err(MazeError::NoStart);
        }
        if goals.is_empty() {
            return Err(MazeError::NoGoal);
        }
        // Ways lead in both directions: what one start reaches, all starts reach if it reaches them.
        let distances = self.distances(starts[0]);
        match starts.iter().chain(&goals).find(|(row, column)| distances[row * columns + column].is_none()) {
            Some(&(row, column)) => Err(MazeError::Unreachable { row, column }),
            None => Ok(()),
        }
    }
}

impl FromStr for Maze {
    type Err = MazeError;

    fn from_str(text: &str) -> Result<Self, MazeError> {
        let rows = text.trim().split(['/', '\n']).map(str::trim);
        let (mut cells, mut columns) = (Vec::new(), None);
        for (row, letters) in rows.enumerate() {
            if row >= MAX_SIDE || letters.len() > 4 * MAX_SIDE {
                return Err(MazeError::TooLarge);
            }
            let before = cells.len();
            for (column, letter) in letters.chars().enumerate() {
                cells.push(match letter {
                    '0' => Cell::Free,
                    '1' => Cell::Wall,
                    'R' => Cell::Start,
                    'G' => Cell::Goal,
                    letter => return Err(MazeError::Letter { row, column, letter }),
                });
            }
            let length = cells.len() - before;
            let expected = *columns.get_or_insert(length);
            if length != expected {
                return Err(MazeError::Ragged { row, length, expected });
            }
        }
        let columns = columns.unwrap_or(0);
        if columns == 0 {
            return Err(MazeError::NoStart);
        }
        if columns > MAX_SIDE {
            return Err(MazeError::TooLarge);
        }
        let maze = Self { columns, cells };
        maze.check()?;
        Ok(maze)
    }
}

impl fmt::Display for Maze {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (row, cells) in self.cells.chunks(self.columns).enumerate() {
            if row > 0 {
                f.write_str("/")?;
            }
            for cell in cells {
                f.write_str(match cell {
                    Cell::Free => "0",
                    Cell::Wall => "1",
                    Cell::Start => "R",
                    Cell::Goal => "G",
                })?;
            }
        }
        Ok(())
    }
}

impl From<Maze> for String {
    fn from(maze: Maze) -> Self {
        maze.to_string()
    }
}

impl TryFrom<String> for Maze {
    type Error = MazeError;

    fn try_from(text: String) -> Result<Self, MazeError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn faults_are_named() {
        for (text, words) in [
            ("", "no start"),
            ("111/1RG/111", "row 1, column 2"),
            ("111/101/111", "no start"),
            ("111/1R1/111", "no goal"),
            ("1111/1RX1/1111", "`X`"),
            ("1111/1RG1/111", "row 2"),
            ("11111/1R1G1/11111", "row 1, column 3"),
        ] {
            let message = text.parse::<Maze>().unwrap_err().to_string();
            assert!(message.contains(words), "{text}: {message}");
        }
        assert_eq!("1/".repeat(300).parse::<Maze>(), Err(MazeError::TooLarge));
        assert_eq!("1".repeat(300).parse::<Maze>(), Err(MazeError::TooLarge));
    }

    #[test]
    fn a_point_is_blocked_where_its_cell_is_a_wall() {
        let maze: Maze = "1111/1RG1/1111".parse().unwrap();
        for (point, blocked) in [
            ([4.0, 4.0], false),
            ([4.0, 9.99], false),
            ([4.0, 10.01], true),
            ([1.99, 4.0], true),
            ([-9.0, 4.0], true),
            ([1e300, 4.0], true),
            ([f64::NAN, 4.0], true),
        ] {
            assert_eq!(maze.blocked(point, 4.0), blocked, "{point:?}");
        }
        assert_eq!(maze.boxes(4.0, 2.0)[0], WallBox { centre: [0.0, 0.0, 1.0], half: [2.0, 2.0, 1.0] });
        assert_eq!((maze.boxes(4.0, 2.0).len(), maze.middle(4.0)), (10, [4.0, 6.0]));
    }

    #[test]
    fn distances_go_around_walls() {
        let maze: Maze = "11111/1R001/11101/1G001/11111".parse().unwrap();
        let distances = maze.distances((1, 1));
        assert_eq!((distances[3 * 5 + 1], distances[0], distances[6]), (Some(6), None, Some(0)));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[01RG/x]{0,40}") {
            if let Ok(maze) = text.parse::<Maze>() {
                prop_assert_eq!(maze.to_string().parse::<Maze>(), Ok(maze));
            }
        }
    }
}
