//! The emoji that the crate `twemoji-assets` embeds.

use emojis::Group;
use image::ImageFormat;
use twemoji_assets::png::PngTwemojiAsset;

use super::{
    Loaded,
    pictures::{FILTER, Shaper, opaque},
};
use crate::images::{ImageError, ImageKind, ImageOptions, ImageSet};

/// The side that pictures get if none is asked for.
const SIDE: usize = 32;

const ATTRIBUTION: &str = "Twemoji graphics, Twitter and contributors, CC-BY 4.0";

/// Every emoji of the crate `emojis` that Twemoji draws, in the order of Unicode, without the variants of skin tone,
/// which are nearly equal.
pub(crate) fn load(options: &ImageOptions) -> Result<Loaded, ImageError> {
    let side = options.size.unwrap_or(SIDE);
    let shaper = Shaper { size: Some(side as u32), channels: options.channels.unwrap_or(3) };
    let shape = [shaper.channels, side, side];
    let groups: Vec<Group> = Group::iter().collect();
    let found: Vec<(u32, &PngTwemojiAsset)> = emojis::iter()
        .filter_map(|emoji| {
            let class = groups.iter().position(|group| *group == emoji.group())?;
            Some((class as u32, asset(emoji.as_str())?))
        })
        .collect();
    let mut values = options.room("the emoji", found.len() as u64, shape)?;
    for (_, asset) in &found {
        let picture = image::load_from_memory_with_format(asset, ImageFormat::Png)
            .map_err(|error| ImageError::Embedded { what: "twemoji", reason: error.to_string() })?;
        shaper.append(opaque(picture), &mut values);
    }
    let labels = found.iter().map(|&(class, _)| class).collect();
    let names = groups.iter().map(|&group| name(group)).collect();
    let source = format!(
        "{} emoji as Twemoji draws them, embedded (crate twemoji-assets), laid over white and resized from 72x72 to \
         {side}x{side} with a {FILTER}",
        found.len()
    );
    let mut train = ImageSet::new(ImageKind::Pictures, shape, values, labels, names, source)?;
    train.attribution = Some(ATTRIBUTION.to_owned());
    // Not to be mirrored: letters, arrows and flags are among them.
    Ok(Loaded { train, test: None })
}

/// The picture of an emoji. Twemoji leaves out the sign that asks for a colourful form where it is not needed.
fn asset(emoji: &str) -> Option<&'static PngTwemojiAsset> {
    PngTwemojiAsset::from_emoji(emoji).or_else(|| PngTwemojiAsset::from_emoji(&emoji.replace('\u{FE0F}', "")))
}

fn name(group: Group) -> String {
    match group {
        Group::SmileysAndEmotion => "smileys and emotion",
        Group::PeopleAndBody => "people and body",
        Group::AnimalsAndNature => "animals and nature",
        Group::FoodAndDrink => "food and drink",
        Group::TravelAndPlaces => "travel and places",
        Group::Activities => "activities",
        Group::Objects => "objects",
        Group::Symbols => "symbols",
        Group::Flags => "flags",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the source says, and that hardly any emoji is without a picture.
    #[test]
    fn pictures_have_72_points_a_side() {
        let mut found = 0;
        for asset in emojis::iter().filter_map(|emoji| asset(emoji.as_str())) {
            let picture = image::load_from_memory_with_format(asset, ImageFormat::Png).unwrap();
            assert_eq!((picture.width(), picture.height()), (72, 72));
            found += 1;
        }
        assert_eq!((found, emojis::iter().count()), (1914, 1923));
    }
}
