//! The mazes that have a name (Wang et al. 2025, the program scaling-crl; Bortkiewicz et al. 2024, JaxGCRL).

use crate::{Maze, Variant};

/// Names and grids. That of `big_maze_eval` is scaling-crl's; JaxGCRL's has one goal more.
const GRIDS: [(&str, &str); 24] = [
    ("u_maze", "11111/1RGG1/111G1/1GGG1/11111"),
    ("u_maze_eval", "11111/1R001/11101/1GGG1/11111"),
    ("u_maze_single_eval", "11111/1R001/11101/1G001/11111"),
    ("u_maze_eval_1f2f3f4f5f", "11111/1RGG1/111G1/10GG1/11111"),
    ("u_maze_eval_1f2f3f4f", "11111/1RGG1/111G1/100G1/11111"),
    ("u_maze_eval_1f2f3f", "11111/1RGG1/111G1/10001/11111"),
    ("u_maze_eval_5f6f", "11111/1R001/11101/1GG01/11111"),
    ("u2_maze", "111111/1RGGG1/1111G1/1GGGG1/111111"),
    ("u2_maze_eval", "111111/1R0001/111101/1GGGG1/111111"),
    ("u3_maze", "1111111/1RGGGG1/11111G1/1GGGGG1/1111111"),
    ("u3_maze_eval", "1111111/1R00001/1111101/1GGGGG1/1111111"),
    ("u3_maze_single_eval", "1111111/1R00001/1111101/1G00001/1111111"),
    ("u4_maze", "11111/1GGG1/1R1G1/111G1/1G1G1/1GGG1/11111"),
    ("u4_maze_eval", "11111/10001/1R101/11101/1G101/1GGG1/11111"),
    ("u5_maze", "11111111/1GGGGGG1/1R1111G1/111111G1/1G1111G1/1GGGGGG1/11111111"),
    ("u5_maze_eval", "11111111/10000001/1R111101/11111101/1G1111G1/1GGGGGG1/11111111"),
    ("u5_maze_single_eval", "11111111/10000001/1R111101/11111101/1G111101/10000001/11111111"),
    ("u6_maze", "1111111/1GGGGG1/1R111G1/11111G1/1G111G1/1GGGGG1/1111111"),
    ("u6_maze_eval", "1111111/1000001/1R11101/1111101/1G111G1/1GGGGG1/1111111"),
    ("u7_maze", "111111/1GGGG1/1R11G1/1111G1/1G11G1/1GGGG1/111111"),
    ("u7_maze_eval", "111111/100001/1R1101/111101/1G11G1/1GGGG1/111111"),
    ("big_maze", "11111111/1RG11GG1/1GG1GGG1/11GGG111/1GG1GGG1/1G1GG1G1/1GGG1GG1/11111111"),
    ("big_maze_eval", "11111111/1R011GG1/100100G1/11000111/10010001/101G01G1/10GG1GG1/11111111"),
    (
        "hardest_maze",
        "111111111111/1RGGG1GGGGG1/1G11G1G1G1G1/1GGGGGG1GGG1/1G1111G111G1/\
         1GG1G1GGGGG1/11G1G1G1G111/1GG1GGG1GGG1/111111111111",
    ),
];

/// `big_maze_eval` of JaxGCRL.
const BIG_MAZE_EVAL_J: &str = "11111111/1R011GG1/10010GG1/11000111/10010001/101G01G1/10GG1GG1/11111111";

/// The named mazes of JaxGCRL.
const OF_JAXGCRL: [&str; 5] = ["u_maze", "u_maze_eval", "big_maze", "big_maze_eval", "hardest_maze"];

/// Names of the mazes that a variant has, those of one family together.
pub fn maze_names(variant: Variant) -> impl Iterator<Item = &'static str> {
    let has = move |name: &str| variant == Variant::ScalingCrl || OF_JAXGCRL.contains(&name);
    GRIDS.iter().map(|(name, _)| *name).filter(move |name| has(name))
}

/// The maze of a name, where the variant has it.
pub fn named_maze(name: &str, variant: Variant) -> Option<Maze> {
    let name = maze_names(variant).find(|known| *known == name)?;
    let (_, text) = GRIDS.iter().find(|(known, _)| *known == name)?;
    let text = if name == "big_maze_eval" && variant == Variant::JaxGcrl { BIG_MAZE_EVAL_J } else { text };
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_grid_is_a_maze() {
        let count = maze_names(Variant::ScalingCrl)
            .map(|name| {
                let maze = named_maze(name, Variant::ScalingCrl).unwrap_or_else(|| panic!("{name}"));
                assert_eq!(maze.starts().len(), 1, "{name}");
            })
            .count();
        assert_eq!((count, maze_names(Variant::JaxGcrl).count()), (24, 5));
        assert_eq!(named_maze("u7_maze", Variant::JaxGcrl), None);
    }

    #[test]
    fn the_big_maze_has_the_walls_and_goals_that_are_stated() {
        let goals = |name, variant| named_maze(name, variant).unwrap().goals().len();
        assert_eq!(named_maze("big_maze", Variant::ScalingCrl).unwrap().walls().len(), 38);
        assert_eq!(goals("big_maze", Variant::ScalingCrl), 25);
        assert_eq!(goals("big_maze_eval", Variant::ScalingCrl), 9);
        assert_eq!(goals("big_maze_eval", Variant::JaxGcrl), 10);
    }

    #[test]
    fn evaluation_layouts_have_the_walls_of_their_training_layouts() {
        for name in maze_names(Variant::ScalingCrl) {
            let Some((training, _)) = name.split_once("_maze_").map(|(family, rest)| (format!("{family}_maze"), rest))
            else {
                continue;
            };
            let [evaluation, training] = [name, &training].map(|name| named_maze(name, Variant::ScalingCrl).unwrap());
            assert_eq!(evaluation.walls(), training.walls(), "{name}");
            assert_eq!(evaluation.starts(), training.starts(), "{name}");
        }
    }
}
