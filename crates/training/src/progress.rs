//! Telling a person how far a run is.

use std::{
    io::{IsTerminal, Write, stderr},
    time::{Duration, Instant},
};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::trainer::StepReport;

/// The progress of one or several runs that are made side by side.
///
/// On a terminal each run has a bar with its loss, its throughput and the time left. Where the standard error output is
/// a file or a pipe, bars would fill it with control characters: there, each evaluation prints one plain line.
///
/// ```
/// use training::progress::Progress;
/// let progress = Progress::hidden();
/// let bar = progress.run("ancre", 0, 1000);
/// progress.message("reading the corpus");
/// bar.finish();
/// ```
///
/// A clone shows in the same place.
#[derive(Clone, Debug)]
pub struct Progress {
    bars: MultiProgress,
    mode: Mode,
    unit: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Bars,
    Lines,
    Hidden,
}

impl Progress {
    /// Bars if the standard error output is a terminal, plain lines if not.
    #[expect(clippy::new_without_default, reason = "what it shows depends on the terminal")]
    pub fn new() -> Self {
        Self::with_mode(if stderr().is_terminal() { Mode::Bars } else { Mode::Lines })
    }

    /// Shows nothing.
    pub fn hidden() -> Self {
        Self::with_mode(Mode::Hidden)
    }

    fn with_mode(mode: Mode) -> Self {
        let target = if mode == Mode::Bars { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        Self::on(target, mode)
    }

    fn on(target: ProgressDrawTarget, mode: Mode) -> Self {
        Self { bars: MultiProgress::with_draw_target(target), mode, unit: "tok" }
    }

    /// Calls what is learned from by another name than "tok", such as "images".
    #[must_use]
    pub fn counting(mut self, unit: &'static str) -> Self {
        self.unit = unit;
        self
    }

    /// Adds the run `name`, of which `done` of `steps` steps lie behind (after a resume).
    pub fn run(&self, name: &str, done: usize, steps: usize) -> RunProgress {
        let bar = self.bars.add(ProgressBar::new(steps as u64));
        // The template is a constant; should it not be understood, the bar is plain.
        let style = ProgressStyle::with_template("{prefix:>26} {bar:24} {pos}/{len} {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
        bar.set_prefix(shortened(name));
        bar.set_position(done as u64);
        let (mode, unit) = (self.mode, self.unit);
        let started = Instant::now();
        RunProgress { name: name.to_owned(), bar, mode, unit, started, done, rate: None, follow: 0, printed: None }
    }

    /// Adds work of `total` parts that is no training; it vanishes when it is finished. Of use on a terminal only.
    pub fn task(&self, name: &str, total: usize) -> TaskProgress {
        let bar = self.bars.add(ProgressBar::new(total as u64));
        let style = ProgressStyle::with_template("{msg} {bar:24} {pos}/{len} left {eta}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
        bar.set_message(name.to_owned());
        TaskProgress { bar }
    }

    /// Prints a line above the bars.
    pub fn message(&self, text: &str) {
        match self.mode {
            Mode::Bars => self.bars.suspend(|| line(text)),
            Mode::Lines => line(text),
            Mode::Hidden => {}
        }
    }
}

/// The progress of work that is no training.
#[derive(Debug)]
pub struct TaskProgress {
    bar: ProgressBar,
}

impl TaskProgress {
    /// So many parts more are done; from any thread.
    pub fn advance(&self, parts: usize) {
        self.bar.inc(parts as u64);
    }

    /// All is done.
    pub fn finish(self) {
        self.bar.finish_and_clear();
    }
}

/// The progress of one run.
#[derive(Debug)]
pub struct RunProgress {
    name: String,
    bar: ProgressBar,
    mode: Mode,
    unit: &'static str,
    started: Instant,
    done: usize,
    /// Tokens a second, smoothed.
    rate: Option<f64>,
    /// Runs as long as this one that come after it.
    follow: usize,
    /// When the last line was printed.
    printed: Option<Instant>,
}

/// Between two plain lines of a run.
const PAUSE: Duration = Duration::from_millis(500);

impl RunProgress {
    /// Counts `more` runs as long as this one, which come after it, into the time that is left.
    #[must_use]
    pub fn followed_by(mut self, more: usize) -> Self {
        self.follow = more;
        self
    }

    /// Seconds until this run and those after it are made, as far as one can tell.
    fn left(&self, report: &StepReport) -> f64 {
        let made = report.step.saturating_sub(self.done).max(1) as f64;
        let steps = report.steps.saturating_sub(report.step) as f64 + self.follow as f64 * report.steps as f64;
        self.started.elapsed().as_secs_f64() / made * steps
    }

    /// Shows a step.
    pub fn update(&mut self, report: &StepReport) {
        let now = report.tokens_per_second();
        self.rate = Some(self.rate.map_or(now, |rate| 0.9 * rate + 0.1 * now));
        match self.mode {
            Mode::Bars => {
                self.bar.set_position(report.step as u64);
                let left = human_duration(self.left(report));
                self.bar.set_message(format!("{}, {left} left", bar_text(report, self.rate, self.unit)));
            }
            Mode::Lines if report.evaluation.is_some() => {
                // Where evaluations come in quick succession, not each is worth a line.
                if report.step >= report.steps || self.printed.is_none_or(|printed| printed.elapsed() >= PAUSE) {
                    line(&plain_line(&self.name, report, self.rate, self.unit, self.left(report)));
                    self.printed = Some(Instant::now());
                }
            }
            Mode::Lines | Mode::Hidden => {}
        }
    }

    /// Leaves the bar as it is and takes no more steps.
    pub fn finish(self) {
        self.bar.abandon();
    }
}

/// A name that fits before a bar: of a long one (a layout with many shortcuts) the beginning.
fn shortened(name: &str) -> String {
    const WIDTH: usize = 26;
    if name.chars().count() <= WIDTH {
        return name.to_owned();
    }
    name.chars().take(WIDTH - 1).chain(['…']).collect()
}

/// A line on the standard error output. Nobody may be left to read it, which must not end a run.
fn line(text: &str) {
    let _ = writeln!(stderr(), "{text}");
}

fn bar_text(report: &StepReport, rate: Option<f64>, unit: &str) -> String {
    let loss = report.loss.map_or_else(|| "-".to_owned(), |loss| format!("{loss:.4}"));
    format!("loss {loss}  {} {unit}/s", human_count(rate.unwrap_or_default()))
}

fn plain_line(name: &str, report: &StepReport, rate: Option<f64>, unit: &str, seconds_left: f64) -> String {
    let mut line = format!("{name}: step {}/{}, {}", report.step, report.steps, bar_text(report, rate, unit));
    // The task logs its most telling number first; the others are in the log.
    if let Some((metric, value)) = report.evaluation.iter().flatten().next() {
        line += &format!(", {} {value:.4}", metric.replace('_', " "));
    }
    line + &format!(", {} left", human_duration(seconds_left))
}

fn human_count(value: f64) -> String {
    match value {
        v if v >= 1e7 => format!("{:.1}M", v / 1e6),
        v if v >= 1e4 => format!("{:.1}k", v / 1e3),
        v => format!("{v:.0}"),
    }
}

fn human_duration(seconds: f64) -> String {
    let seconds = seconds.max(0.0).round() as u64;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds} s"),
        (0, minutes) => format!("{minutes} min {:02} s", seconds % 60),
        (hours, minutes) => format!("{hours} h {minutes:02} min"),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use indicatif::TermLike;

    use super::*;

    fn report() -> StepReport {
        StepReport {
            step: 50,
            steps: 200,
            loss: Some(2.34567),
            lr: 1e-3,
            gradient_norm: Some(1.0),
            tokens: 4096,
            tokens_seen: 204_800,
            skipped: 0,
            seconds: 0.25,
            evaluation: Some(vec![("val_loss".into(), 2.5), ("val_ppl".into(), 12.1825)]),
        }
    }

    #[test]
    fn a_plain_line_holds_what_a_bar_would_show() {
        assert_eq!(
            plain_line("ancre", &report(), Some(16_384.0), "tok", 3725.0),
            "ancre: step 50/200, loss 2.3457  16.4k tok/s, val loss 2.5000, 1 h 02 min left"
        );
        let nothing = StepReport { loss: None, evaluation: None, ..report() };
        assert_eq!(plain_line("a", &nothing, None, "tok", 59.6), "a: step 50/200, loss -  0 tok/s, 1 min 00 s left");
    }

    /// A terminal that only remembers what was written to it.
    #[derive(Clone, Debug, Default)]
    struct Screen(Arc<Mutex<String>>);

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            120
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_long_name_does_not_push_its_bar_out_of_line() {
        assert_eq!(shortened("replacing, depth 64, seed 10"), "replacing, depth 64, seed…");
        assert_eq!(shortened("cascade, depth 16, seed 0"), "cascade, depth 16, seed 0");
        assert_eq!(shortened(&"é".repeat(40)).chars().count(), 26);
    }

    #[test]
    fn several_runs_are_shown_side_by_side() {
        let screen = Screen::default();
        let target = ProgressDrawTarget::term_like(Box::new(screen.clone()));
        let progress = Progress::on(target, Mode::Bars);
        let mut runs: Vec<_> = ["off", "ancre"].map(|name| progress.run(name, 10, 200)).into();
        for (run, loss) in runs.iter_mut().zip([2.5, 1.25]) {
            run.update(&StepReport { loss: Some(loss), ..report() });
        }
        screen.0.lock().unwrap().clear();
        runs.into_iter().for_each(RunProgress::finish);
        let shown = screen.0.lock().unwrap().clone();
        for part in ["off", "ancre", "50/200", "loss 2.5000", "loss 1.2500", "16.4k tok/s"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    }

    #[test]
    fn the_largest_sizes_can_be_shown() {
        for mode in [Mode::Bars, Mode::Lines] {
            let progress = Progress::on(ProgressDrawTarget::term_like(Box::new(Screen::default())), mode);
            let mut run = progress.run("a", usize::MAX - 1, usize::MAX);
            run.update(&StepReport { step: usize::MAX, steps: usize::MAX, tokens: u64::MAX, ..report() });
            run.update(&StepReport { step: 0, steps: usize::MAX, seconds: 0.0, ..report() });
            run.finish();
        }
        assert_eq!(human_duration(f64::INFINITY), format!("{} h 00 min", u64::MAX / 3600));
    }
}
