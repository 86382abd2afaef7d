use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::strategies::any_layout;

fn check(text: &str, depth: usize, expected: Expect) {
    expected.assert_eq(&match Layout::parse(text, depth) {
        Ok(layout) => layout.to_string(),
        Err(error) => error.to_string(),
    });
}

#[test]
fn notation_is_read_in_any_order_and_spacing() {
    check("0:2+2:3", 4, expect!["0:2+2:3"]);
    check(" 2:3 +\t0 : 2 ", 4, expect!["0:2+2:3"]);
    check("0:10+00:02", 12, expect!["0:2+0:10"]);
    check("None", 4, expect!["none"]);
    check(" cascade ", 4, expect!["0:1+1:2+2:3+3:4"]);
    check("0:l", 3, expect!["0:1+0:2+0:3"]);
    check("0:k-1", 3, expect!["0:2"]);
}

#[test]
fn errors_name_the_column_and_what_was_expected() {
    check("0:2+3", 4, expect!["layout `0:2+3`: column 6: expected `:` after the source `3`"]);
    check("", 4, expect!["layout ``: column 1: expected a layout such as `0:2+2:3`, or a name such as `none`"]);
    check("   ", 4, expect!["layout `   `: column 4: expected a layout such as `0:2+2:3`, or a name such as `none`"]);
    check(
        "+0:2",
        4,
        expect!["layout `+0:2`: column 1: expected a layout such as `0:2+2:3`, or a name such as `none`, found `+`"],
    );
    check("0:2+", 4, expect!["layout `0:2+`: column 5: expected a shortcut such as `0:2` after the `+`"]);
    check(
        "0:2++1:2",
        4,
        expect!["layout `0:2++1:2`: column 5: expected a shortcut such as `0:2` after the `+`, found `+`"],
    );
    check("0:2 1:2", 4, expect!["layout `0:2 1:2`: column 5: expected `+` or the end after `0:2`, found `1`"]);
    check("0-2", 4, expect!["layout `0-2`: column 2: expected `:` after the source `0`, found `-`"]);
    check("0:", 4, expect!["layout `0:`: column 3: expected a target node after `0:`"]);
    check("0:+1:2", 4, expect!["layout `0:+1:2`: column 3: expected a target node after `0:`, found `+`"]);
    check("0:-2", 4, expect!["layout `0:-2`: column 3: expected a target node after `0:`, found `-`"]);
    check("0:K", 4, expect!["layout `0:K`: column 3: expected a target node after `0:`, found `K`"]);
    check(
        "0:1+ 3:2",
        4,
        expect![
            "layout `0:1+ 3:2`: column 6: `3:2` does not point forward: the source must be smaller than the target"
        ],
    );
    check(
        "2:2",
        4,
        expect!["layout `2:2`: column 1: `2:2` does not point forward: the source must be smaller than the target"],
    );
    check(
        "0:1+1:5",
        4,
        expect!["layout `0:1+1:5`: column 7: node 5 lies beyond the output: at depth 4 the nodes are 0 to 4"],
    );
    check(
        "99999999999999999999999:2",
        4,
        expect![
            "layout `99999999999999999999999:2`: column 1: node 99999999999999999999999 lies beyond the output: at depth 4 the nodes are 0 to 4"
        ],
    );
    check(
        "0:2+1:3+0:2",
        4,
        expect!["layout `0:2+1:3+0:2`: column 9: `0:2` is given twice, the first time at column 1"],
    );
    check(
        "casacde",
        4,
        expect![
            "layout `casacde`: column 1: `casacde` is not the name of a layout: the names are `none`, `cascade`, `hidden-cascade`, `dense`, `hidden-dense`, `0:K-1`, `0:l`"
        ],
    );
    check(
        "none+0:1",
        4,
        expect![
            "layout `none+0:1`: column 1: `none+0:1` is not the name of a layout: the names are `none`, `cascade`, `hidden-cascade`, `dense`, `hidden-dense`, `0:K-1`, `0:l`"
        ],
    );
    check("0:2", 0, expect!["layout `0:2`: a depth of 0 is not possible: a stack has between 1 and 256 layers"]);
    check(
        "dense",
        300,
        expect!["layout `dense`: a depth of 300 is not possible: a stack has between 1 and 256 layers"],
    );
    check("0:K-1", 1, expect!["layout `0:K-1`: the layout `0:K-1` needs at least 2 layers, and the depth is 1"]);
}

#[test]
fn columns_count_characters_and_messages_stay_on_one_short_line() {
    check(
        "０:2",
        4,
        expect!["layout `０:2`: column 1: expected a layout such as `0:2+2:3`, or a name such as `none`, found `０`"],
    );
    check(
        "0:2\n+\u{7}",
        4,
        expect![[r#"layout `0:2\n+\u{7}`: column 6: expected a shortcut such as `0:2` after the `+`, found `\u{7}`"#]],
    );
    check(
        &"0:1+".repeat(400),
        4,
        expect![
            "layout `0:1+0:1+0:1+0:1+0:1+0:1+0:1+0:1+0:1+0:1+0:1+0:1+0:1+0:1+0:1+…`: column 5: `0:1` is given twice, the first time at column 1"
        ],
    );
    check(
        &"9".repeat(4000),
        4,
        expect![
            "layout `999999999999999999999999999999999999999999999999999999999999…`: column 1: node 999999999999999999999999999999999999999999999999999999999999… lies beyond the output: at depth 4 the nodes are 0 to 4"
        ],
    );
}

#[test]
fn without_a_depth_the_smallest_one_is_taken() {
    let depth = |text: &str| text.parse::<Layout>().map(|layout| layout.depth());
    assert_eq!(depth("0:2+2:3"), Ok(3));
    assert_eq!(depth("none"), Ok(1));
    assert_eq!(depth("0:256"), Ok(256));
    expect!["layout `0:257`: column 3: node 257 lies beyond the output: at depth 256 the nodes are 0 to 256"]
        .assert_eq(&depth("0:257").unwrap_err().to_string());
    expect!["layout ` dense`: column 2: `dense` stands for another layout at each depth: give the depth, or write the shortcuts"].assert_eq(&depth(" dense").unwrap_err().to_string());
}

#[test]
fn display_pads_like_a_string() {
    let layout = Layout::parse("0:2", 4).unwrap();
    assert_eq!(format!("[{layout:>6}]"), "[   0:2]");
    assert_eq!(format!("[{:<6}]", Layout::none(4).unwrap()), "[none  ]");
}

proptest! {
    #[test]
    fn text_and_layout_round_trip(layout in any_layout()) {
        prop_assert_eq!(Layout::parse(&layout.to_string(), layout.depth()).unwrap(), layout);
    }

    #[test]
    fn the_order_of_the_text_does_not_matter(layout in any_layout(), seed: u64) {
        let mut parts: Vec<String> = layout.iter().map(|s| s.to_string()).collect();
        // A permutation from a seed: sort by a hash of seed and part.
        parts.sort_by_key(|part| part.bytes().fold(seed, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)));
        prop_assume!(!parts.is_empty());
        prop_assert_eq!(Layout::parse(&parts.join(" + "), layout.depth()).unwrap(), layout);
    }

    #[test]
    fn garbage_is_an_error_and_never_a_panic(text in any::<String>(), depth in 0usize..300) {
        let _ = Layout::parse(&text, depth);
        let _ = text.parse::<Layout>();
    }

    #[test]
    fn near_misses_never_panic_and_point_into_the_text(text in "[0-4:+ Kl-]{0,12}", depth in 1usize..6) {
        match Layout::parse(&text, depth) {
            Ok(layout) => prop_assert!(layout.depth() == depth),
            Err(ParseLayoutError::Notation { column, .. }) => {
                prop_assert!((1..=text.chars().count() + 1).contains(&column));
            }
            Err(ParseLayoutError::Depth { .. }) => prop_assert_eq!((text.trim(), depth), ("0:K-1", 1)),
        }
    }
}
