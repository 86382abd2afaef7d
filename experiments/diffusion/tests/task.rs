//! The task and the judge on the embedded digits: losses, averages, scores.

use std::sync::Arc;

use burn::backend::{Autodiff, Flex};
use experiments_diffusion::{
    data::{HeldOut, Images},
    model::Dit,
    presets::Preset,
    sampling::labels_in_turn,
    scores::Judge,
    settings::{EvaluationSettings, Settings},
    task::{Denoising, held_out_losses, metric, training_process},
};
use training::{progress::Progress, trainer::Task};

type B = Autodiff<Flex>;

fn digits() -> (Settings, Images) {
    let mut settings = Preset::Smoke.settings();
    let images = Images::load(&settings).expect("the digits are embedded");
    settings.model = images.settle(&settings.model).expect("sizes that fit");
    (settings, images)
}

#[test]
fn an_untrained_model_predicts_nothing_so_its_loss_is_the_noises() {
    let (settings, images) = digits();
    let model = Dit::<Flex>::new(&settings.model, 0, &Default::default()).expect("a valid configuration");
    let evaluation = EvaluationSettings { images: 0, ..settings.evaluation };
    let held_out = HeldOut::new(&images.held_out, &evaluation);
    let losses = held_out_losses(&model, &training_process(&settings.model), &held_out, &Default::default());
    // The final layer begins at zero; the mean square of normal noise is 1, here over 114,560 numbers.
    assert!((losses.mse - 1.0).abs() < 0.02, "{}", losses.mse);
    assert_eq!(losses.levels.len(), settings.evaluation.noise_levels);
    assert!((losses.levels.iter().sum::<f64>() / 10.0 - losses.mse).abs() < 1e-9);
    assert!(losses.bound.expect("a bound for learned variance").is_finite());
}

#[test]
fn the_judge_finds_real_images_good_and_noise_bad() {
    let (settings, images) = digits();
    let device = Default::default();
    let judge = Judge::train::<B>(&images, 0, &device, &Progress::hidden()).expect("enough images");
    assert!(judge.accuracy() > 0.95, "{}", judge.accuracy());
    let real = judge.score(images.held_out.values(), images.held_out.labels(), &device).expect("scores");
    assert!(real.accuracy == judge.accuracy() && real.scores.precision > 0.6, "{real:?}");
    let count = 100;
    let mut rng = training::seed::stream(0, "test", 0);
    let noise = experiments_diffusion::data::normal(&mut rng, count * 64);
    let bad = judge.score(&noise, &labels_in_turn(count, 10), &device).expect("scores");
    assert!(bad.scores.frechet_distance > 5.0 * real.scores.frechet_distance && bad.accuracy < 0.4, "{bad:?}");
    // Nothing of it depends on the number of threads.
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    let one = alone.install(|| judge.score(&noise, &labels_in_turn(count, 10), &device)).expect("scores");
    let two = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("threads");
    let both = two.install(|| judge.score(&noise, &labels_in_turn(count, 10), &device)).expect("scores");
    assert_eq!((&one.scores, one.accuracy), (&both.scores, both.accuracy));
    // Nor on a seed: another judge is the same.
    let again = Judge::train::<B>(&images, 0, &device, &Progress::hidden()).expect("enough images");
    let same = again.score(&noise, &labels_in_turn(count, 10), &device).expect("scores");
    assert_eq!(same.scores, bad.scores);
    assert!(real.scores.protocol.to_string().contains("1618 references"), "{}", real.scores.protocol);
    assert_eq!(settings.evaluation.samples, 40);
}

#[test]
fn scores_come_at_the_steps_that_are_asked_for_and_at_the_end() {
    let (mut settings, images) = digits();
    settings.training.steps = 6;
    settings.training.evaluate_every = 1;
    settings.evaluation = EvaluationSettings { score_every: 4, samples: 10, images: 8, ..settings.evaluation };
    settings.sampling.steps = "3".parse().expect("steps");
    let device = Default::default();
    let judge = Judge::train::<B>(&images, 200, &device, &Progress::hidden()).expect("enough images");
    let model = Dit::<B>::new(&settings.model, 0, &device).expect("a valid configuration");
    let mut task = Denoising::new(&settings, &images, Some(Arc::clone(&judge)), &model, &device).expect("batches");
    let valid = burn::module::AutodiffModule::valid(&model);
    for step in 0..=6 {
        let values = Task::<B, Dit<B>>::evaluate(&mut task, &valid, step).expect("an evaluation");
        let scored = values.iter().any(|(name, _)| name == metric::FRECHET);
        assert_eq!(scored, step == 4 || step == 6, "step {step}");
        assert!(values.iter().all(|(_, value)| value.is_finite()), "step {step}: {values:?}");
    }
    assert!(task.samples(6).is_some_and(|samples| samples.len() == 640) && task.samples(4).is_none());
}
