//! The ranking itself: classes of layouts in the order of their speed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use connection_layout::{Layout, ReducedNet};
use rayon::prelude::*;

use super::measure::{Speed, Spread};
use super::settings::{RankingError, RankingSettings};

/// How fast a layout, or a class of them, trains.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The times of gradient flow over the instances.
    pub flow: Spread,
    /// For each rate the steps of gradient descent over the instances.
    pub steps: Vec<Spread>,
    /// The rate of the fewest steps in the median, as an index; the larger rate of equal ones. `None` where no rate
    /// reached the loss.
    pub best_rate: Option<usize>,
}

impl Summary {
    /// Of runs with at least one instance; the best of equally good rates is the largest.
    fn new(rates: &[f64], speeds: &[Speed]) -> Self {
        let spread = |numbers: Vec<f64>| {
            // A ranking has at least one instance.
            Spread::of(numbers).unwrap_or_else(|| unreachable!("no instance"))
        };
        let flow = spread(speeds.iter().map(|speed| speed.flow).collect());
        let steps: Vec<Spread> =
            (0..rates.len()).map(|rate| spread(speeds.iter().map(|speed| speed.steps[rate]).collect())).collect();
        let best_rate = (0..rates.len())
            .filter(|&rate| steps[rate].median.is_finite())
            .min_by(|&a, &b| steps[a].median.total_cmp(&steps[b].median).then(rates[b].total_cmp(&rates[a])));
        Self { flow, steps, best_rate }
    }

    /// The median steps at the best rate; infinity where no rate reached the loss.
    pub fn fewest_steps(&self) -> f64 {
        self.best_rate.map_or(f64::INFINITY, |rate| self.steps[rate].median)
    }
}

/// A layout of a ranking.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The layout.
    pub layout: Layout,
    /// Its class, an index into [`Ranking::classes`].
    pub class: usize,
    /// Its runs, one an instance.
    pub speeds: Vec<Speed>,
    /// What came out of them.
    pub summary: Summary,
}

/// Layouts that compute the same function of their alive weights. Up to the weights that are drawn, and to the dead
/// layers that start small but not at zero, they are equally fast.
///
/// A layout without an alive layer is a class of its own: it trains by its dead layers alone, and its reduced net,
/// which is empty, says nothing about how fast.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// The reduced net that they share, without gaps; empty where zero weights are a critical point.
    pub net: ReducedNet,
    /// The layouts, as indices into [`Ranking::entries`].
    pub members: Vec<usize>,
    /// Over the instances, where each instance counts with the median over the members.
    pub summary: Summary,
    /// The largest difference of flow times between members on the same instance, relative to the smaller one.
    pub flow_spread: f64,
    /// One plus the number of layouts in classes that are faster under gradient flow.
    pub flow_rank: usize,
    /// One plus the number of layouts in classes that take fewer steps of gradient descent, each at its best rate.
    pub descent_rank: usize,
}

/// Every layout of a pool, sorted into classes by how fast it trains.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    settings: RankingSettings,
    classes: Vec<Class>,
    entries: Vec<Entry>,
}

impl Ranking {
    /// Trains every layout on every instance, in parallel; the result does not depend on the number of threads.
    ///
    /// `progress` is told the number of runs done so far, out of [`RankingSettings::runs`], from several threads.
    ///
    /// # Errors
    ///
    /// [`RankingError`] for settings that make no sense.
    pub fn measure(settings: &RankingSettings, progress: impl Fn(u64) + Sync) -> Result<Self, RankingError> {
        settings.check()?;
        let layouts: Vec<Layout> = settings.pool()?.collect();
        let instances: Vec<_> = (0..settings.instances).map(|instance| settings.instance(instance)).collect();
        let done = AtomicU64::new(0);
        let speeds: Vec<Vec<Speed>> = layouts
            .par_iter()
            // Layouts differ in their cost by orders of magnitude, and neighbours are alike.
            .with_max_len(1)
            .map(|layout| {
                let runs = instances.iter().map(|(target, weights)| {
                    let speed = Speed::measure(settings, layout, target, weights);
                    progress(done.fetch_add(1, Ordering::Relaxed) + 1);
                    speed
                });
                runs.collect::<Result<_, _>>()
            })
            .collect::<Result<_, _>>()?;
        Self::sort(settings.clone(), layouts, speeds)
    }

    fn sort(settings: RankingSettings, layouts: Vec<Layout>, speeds: Vec<Vec<Speed>>) -> Result<Self, RankingError> {
        let mut numbers: HashMap<ReducedNet, usize> = HashMap::new();
        let mut nets: Vec<(ReducedNet, Vec<usize>)> = Vec::new();
        for (index, layout) in layouts.iter().enumerate() {
            let net = layout.reduced_net()?.without_gaps();
            let number = if net.is_empty() { nets.len() } else { *numbers.entry(net.clone()).or_insert(nets.len()) };
            if number == nets.len() {
                nets.push((net, Vec::new()));
            }
            nets[number].1.push(index);
        }
        let mut classes: Vec<Class> =
            nets.into_iter().map(|(net, members)| class(&settings, net, members, &speeds)).collect();
        // Equal speeds, as of all that never get there, stay in the order of the enumeration.
        classes.sort_by(|a, b| a.summary.flow.median.total_cmp(&b.summary.flow.median));
        let flow_ranks = ranks(&classes, |class| class.summary.flow.median);
        let descent_ranks = ranks(&classes, |class| class.summary.fewest_steps());
        let mut class_of = vec![0; layouts.len()];
        for (number, class) in classes.iter_mut().enumerate() {
            (class.flow_rank, class.descent_rank) = (flow_ranks[number], descent_ranks[number]);
            class.members.iter().for_each(|&member| class_of[member] = number);
        }
        let entries = layouts.into_iter().zip(speeds).zip(class_of).map(|((layout, speeds), class)| {
            let summary = Summary::new(&settings.rates, &speeds);
            Entry { layout, class, speeds, summary }
        });
        let entries = entries.collect();
        Ok(Self { settings, classes, entries })
    }

    /// What was asked for.
    pub fn settings(&self) -> &RankingSettings {
        &self.settings
    }

    /// The classes, the one that is fastest under gradient flow first.
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// The layouts in the order of their enumeration.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry of a layout; `None` when it is not of the pool.
    pub fn entry(&self, layout: &Layout) -> Option<&Entry> {
        if layout.depth() != self.settings.depth {
            return None;
        }
        self.entries.get(usize::try_from(layout.index()?).ok()?)
    }

    /// The class of a layout; `None` when it is not of the pool.
    pub fn class_of(&self, layout: &Layout) -> Option<&Class> {
        self.entry(layout).map(|entry| &self.classes[entry.class])
    }

    /// The classes by the steps of gradient descent, the fewest first.
    pub fn by_descent(&self) -> Vec<&Class> {
        let mut classes: Vec<&Class> = self.classes.iter().collect();
        classes.sort_by_key(|class| class.descent_rank);
        classes
    }
}

fn class(settings: &RankingSettings, net: ReducedNet, members: Vec<usize>, speeds: &[Vec<Speed>]) -> Class {
    let middle = |number: &dyn Fn(&Speed) -> f64, instance: usize| {
        // A class has at least one member.
        Spread::of(members.iter().map(|&member| number(&speeds[member][instance])))
            .unwrap_or_else(|| unreachable!("no member"))
    };
    let instances = 0..speeds[members[0]].len();
    let typical: Vec<Speed> = instances
        .clone()
        .map(|instance| Speed {
            flow: middle(&|speed| speed.flow, instance).median,
            steps: (0..settings.rates.len()).map(|rate| middle(&|speed| speed.steps[rate], instance).median).collect(),
        })
        .collect();
    let spread = |instance| {
        let Spread { min, max, .. } = middle(&|speed| speed.flow, instance);
        if min == max { 0.0 } else { max / min - 1.0 }
    };
    let flow_spread = instances.map(spread).fold(0.0, f64::max);
    let summary = Summary::new(&settings.rates, &typical);
    Class { net, members, summary, flow_spread, flow_rank: 0, descent_rank: 0 }
}

/// For each class, one plus the number of layouts in classes with a smaller value.
fn ranks(classes: &[Class], value: impl Fn(&Class) -> f64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..classes.len()).collect();
    order.sort_by(|&a, &b| value(&classes[a]).total_cmp(&value(&classes[b])));
    let mut ranks = vec![0; classes.len()];
    let (mut before, mut rank, mut last) = (0, 1, f64::NEG_INFINITY);
    for number in order {
        if value(&classes[number]) > last {
            (rank, last) = (before + 1, value(&classes[number]));
        }
        ranks[number] = rank;
        before += classes[number].members.len();
    }
    ranks
}
