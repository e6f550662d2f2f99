//! Comparisons of two loads in short turns, in the order of the Thue-Morse sequence (without, with,
//! with, without, with, …): a slow stretch of the machine, work that comes back at intervals, and
//! what a longer journal costs fall on both alike.

use crate::Plan;
use crate::load::LoadFigures;
use crate::report::{percent, rate_and_latency};

/// How often the two are compared, each time in four turns; a sixth of it in a quick run.
const QUADS: usize = 24;

/// What two loads showed.
#[derive(Default)]
pub(crate) struct InTurns {
    /// All turns of the load without what is measured.
    without: LoadFigures,
    /// All turns of the load with it.
    pub(crate) with: LoadFigures,
    /// The rate with it, of the rate without, of each four turns.
    ratios: Vec<f64>,
}

impl InTurns {
    /// Runs turns of a load, with what is measured where it is called with true.
    pub(crate) fn measure(plan: &Plan, turn: impl Fn(bool) -> LoadFigures) -> Self {
        let mut all = Self::default();
        // What only the first load does, such as waking the merchants, is not measured.
        drop(turn(false));
        for quad_number in 0..plan.count(QUADS) {
            let mut quad = <[LoadFigures; 2]>::default();
            for number in 4 * quad_number..4 * quad_number + 4 {
                let is_with = number.count_ones() % 2 == 1;
                quad[usize::from(is_with)].add(&turn(is_with));
            }
            all.ratios.push(quad[1].rate() / quad[0].rate());
            all.without.add(&quad[0]);
            all.with.add(&quad[1]);
        }
        all
    }

    /// The rate with it, of the rate without.
    pub(crate) fn part(&self) -> f64 {
        self.with.rate() / self.without.rate()
    }

    /// That part with its standard error, and the CPU of both.
    pub(crate) fn figure(&self) -> String {
        let micros = |load: &LoadFigures| load.cpu_each().process.as_secs_f64() * 1e6;
        format!(
            "{} ± {:.1}: {}; CPU {:.1} against {:.1} µs",
            percent(self.with.rate(), self.without.rate()),
            100.0 * standard_error(&self.ratios),
            rate_and_latency(&self.with),
            micros(&self.with),
            micros(&self.without)
        )
    }
}

/// The standard error of a mean.
fn standard_error(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    (squares / (count - 1.0) / count).sqrt()
}
