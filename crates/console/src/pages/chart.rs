//! Charts as SVG, each with a table of the same data.
//!
//! The SVG stretches to the width of its box, so it has only shapes; labels are HTML beside it and keep their size on phones.
//! Colours come from classes, because the content security policy forbids style attributes.

use std::fmt::Write;

use askama::Template;

use super::format;

/// Size of the drawing in its own units.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 200.0;

/// Steps of the vertical axis.
const INTERVALS: u32 = 4;

const DAY_SECONDS: i64 = 24 * 60 * 60;

/// The share of its step that a bar fills.
const BAR_SHARE: f64 = 0.78;

/// A chart over time.
#[derive(Clone, Debug, Template)]
#[template(path = "chart.html")]
pub(crate) struct Chart {
    /// The `id` of its elements; unique on the page.
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) unit: ChartUnit,
    pub(crate) shape: ChartShape,
    /// When the first step begins.
    pub(crate) since: i64,
    /// Seconds of a step.
    pub(crate) step: i64,
    pub(crate) series: Vec<ChartSeries>,
}

/// One series of values.
#[derive(Clone, Debug)]
pub(crate) struct ChartSeries {
    pub(crate) name: &'static str,
    /// The class of its colour, such as `s-ok`.
    pub(crate) class: &'static str,
    /// A value per step; `None` where there is none.
    pub(crate) values: Vec<Option<f64>>,
}

/// What the values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChartUnit {
    Number,
    Milliseconds,
}

/// How the values are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChartShape {
    /// Bars, in which the series lie on each other.
    Bars,
    /// A line for each series.
    Lines,
}

impl Chart {
    /// Whether there is nothing to see.
    pub(crate) fn is_empty(&self) -> bool {
        self.largest() <= 0.0
    }

    fn steps(&self) -> usize {
        self.series.iter().map(|series| series.values.len()).max().unwrap_or(0)
    }

    /// The largest value, or the largest sum of a step if the series lie on each other.
    fn largest(&self) -> f64 {
        let values = |step: usize| self.series.iter().filter_map(move |series| value(series, step));
        (0..self.steps())
            .map(|step| match self.shape {
                ChartShape::Bars => values(step).sum(),
                ChartShape::Lines => values(step).fold(0.0, f64::max),
            })
            .fold(0.0, f64::max)
    }

    /// The value at the top of the chart.
    fn top(&self) -> f64 {
        let is_whole = self.unit == ChartUnit::Number;
        nice_step(self.largest() / f64::from(INTERVALS), is_whole) * f64::from(INTERVALS)
    }

    /// The labels of the vertical axis from top to bottom.
    pub(crate) fn y_labels(&self) -> Vec<String> {
        let top = self.top();
        (0..=INTERVALS)
            .rev()
            .map(|line| self.axis_label(top * f64::from(line) / f64::from(INTERVALS)))
            .collect()
    }

    /// The labels of the horizontal axis: evenly spaced, from the begin of the first step to the end of the last.
    pub(crate) fn x_labels(&self) -> Vec<String> {
        let steps = self.steps();
        let duration = i64::try_from(steps).unwrap_or(0).saturating_mul(self.step);
        // Times of day alone do not tell the days of a week apart.
        let (step, preferred) = if duration > 2 * DAY_SECONDS {
            (self.step.max(DAY_SECONDS), [7, 5, 6, 4, 3, 2])
        } else {
            (self.step, [4, 3, 5, 6, 7, 2])
        };
        let intervals = preferred.into_iter().find(|n| steps.is_multiple_of(*n)).unwrap_or(1);
        let width = i64::try_from(steps / intervals).unwrap_or(0).saturating_mul(self.step);
        (0..=intervals as i64).map(|n| format::step_label(&(self.since + n * width), &step)).collect()
    }

    /// Each step with its time and the texts of its values, oldest first.
    pub(crate) fn rows(&self) -> Vec<(String, Vec<String>)> {
        (0..self.steps())
            .map(|step| {
                let text =
                    |series| value(series, step).map_or_else(|| "–".to_owned(), |v| self.value_text(v));
                (self.time_of(step), self.series.iter().map(text).collect())
            })
            .collect()
    }

    fn time_of(&self, step: usize) -> String {
        let offset = i64::try_from(step).unwrap_or(0).saturating_mul(self.step);
        format::step_label_with_day(&(self.since + offset), &self.step)
    }

    fn value_text(&self, value: f64) -> String {
        match self.unit {
            ChartUnit::Number => format::count(&(value.round() as u64)),
            ChartUnit::Milliseconds => format::milliseconds(&value),
        }
    }

    fn axis_label(&self, value: f64) -> String {
        match self.unit {
            ChartUnit::Number => format::short(&value),
            ChartUnit::Milliseconds => format::milliseconds(&value),
        }
    }

    /// The shapes, without labels: grid and series. The script shows the values of a step from the table.
    pub(crate) fn svg(&self) -> String {
        let mut svg = String::new();
        for line in 0..=INTERVALS {
            let y = HEIGHT * f64::from(line) / f64::from(INTERVALS);
            let class = if line == INTERVALS { "axis" } else { "grid" };
            let _ = write!(svg, r#"<path class="{class}" d="M0 {y}H{WIDTH}"/>"#);
        }
        match self.shape {
            ChartShape::Bars => self.write_bars(&mut svg),
            ChartShape::Lines => self.write_lines(&mut svg),
        }
        svg
    }

    fn write_bars(&self, svg: &mut String) {
        let (top, step_width) = (self.top(), WIDTH / self.steps().max(1) as f64);
        let (width, margin) = (step_width * BAR_SHARE, step_width * (1.0 - BAR_SHARE) / 2.0);
        let mut below = vec![0.0; self.steps()];
        for series in &self.series {
            let mut path = String::new();
            for (step, below) in below.iter_mut().enumerate() {
                let Some(value) = value(series, step).filter(|value| *value > 0.0) else { continue };
                let (x, bottom) = (step as f64 * step_width + margin, HEIGHT * (1.0 - *below / top));
                *below += value;
                let height = HEIGHT * value / top;
                let _ = write!(path, "M{x:.1} {bottom:.1}v-{height:.1}h{width:.1}v{height:.1}z");
            }
            if !path.is_empty() {
                let _ = write!(svg, r#"<path class="bar {}" d="{path}"/>"#, series.class);
            }
        }
    }

    fn write_lines(&self, svg: &mut String) {
        let (top, step_width) = (self.top(), WIDTH / self.steps().max(1) as f64);
        for series in &self.series {
            let points = series.values.iter().enumerate().map(|(step, value)| {
                value.map(|value| ((step as f64 + 0.5) * step_width, HEIGHT * (1.0 - value.max(0.0) / top)))
            });
            let path = line_path(points);
            if !path.is_empty() {
                let _ = write!(svg, r#"<path class="line {}" d="{path}"/>"#, series.class);
            }
        }
    }
}

/// A small line without axes beside a number that says the same, so it is hidden from screen readers.
pub(crate) fn sparkline(values: &[Option<f64>]) -> String {
    const SPARK_WIDTH: f64 = 120.0;
    const SPARK_HEIGHT: f64 = 28.0;
    let top = values.iter().flatten().copied().filter(|value| value.is_finite()).fold(0.0, f64::max);
    let step_width = SPARK_WIDTH / values.len().saturating_sub(1).max(1) as f64;
    let scale = if top > 0.0 { (SPARK_HEIGHT - 2.0) / top } else { 0.0 };
    let points = values.iter().enumerate().map(|(step, value)| {
        value
            .filter(|value| value.is_finite())
            .map(|value| (step as f64 * step_width, SPARK_HEIGHT - 1.0 - value.max(0.0) * scale))
    });
    let path = line_path(points);
    format!(
        "<svg class=\"spark\" viewBox=\"0 0 {SPARK_WIDTH} {SPARK_HEIGHT}\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
         <path class=\"line\" d=\"{path}\"/></svg>"
    )
}

/// A line through points, interrupted where there is none. A single point becomes a short dash, so that it is visible.
fn line_path(points: impl Iterator<Item = Option<(f64, f64)>>) -> String {
    let (mut path, mut is_drawing) = (String::new(), false);
    for point in points {
        match point {
            Some((x, y)) if is_drawing => drop(write!(path, "L{x:.1} {y:.1}")),
            Some((x, y)) => drop(write!(path, "M{x:.1} {y:.1}h1")),
            None => {}
        }
        is_drawing = point.is_some();
    }
    path
}

/// A value that can be drawn.
fn value(series: &ChartSeries, step: usize) -> Option<f64> {
    series.values.get(step).copied().flatten().filter(|value| value.is_finite() && *value >= 0.0)
}

/// The smallest round number that is not below a value: one of a few factors times a power of ten.
fn nice_step(value: f64, is_whole: bool) -> f64 {
    if value <= 0.0 || (is_whole && value <= 1.0) {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    // Labels of values that are not whole have few digits, which half factors do not fit into.
    let factors = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.5, 10.0_f64];
    let factors = factors.into_iter().filter(|factor| is_whole || factor.fract() == 0.0);
    let is_right = |step: &f64| *step >= value * 0.999_999 && (!is_whole || step.fract() == 0.0);
    factors.map(|factor| factor * power).find(is_right).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests;
