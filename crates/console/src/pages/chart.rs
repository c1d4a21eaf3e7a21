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

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Spans of time between two labels; the script has the same for the time zone of the browser.
const TICK_SPANS: [i64; 12] = [
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    4 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    5 * DAY,
];

/// Labels of the horizontal axis at most; a narrow page shows every second one.
const TICKS_MAX: i64 = 7;

/// Labels nearer to an end of the axis than this, in percent, are written inwards, so that they stay below the plot.
const TICK_MARGIN: f64 = 9.0;

/// The least height of a bar that is not 0, so that a single call is visible beside thousands.
const BAR_HEIGHT_MIN: f64 = 2.0;

/// The share of its step that a bar fills.
const BAR_SHARE: f64 = 0.78;

#[derive(Clone, Debug, Template)]
#[template(path = "chart.html")]
pub(crate) struct Chart {
    /// The `id` of its elements; unique on the page.
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) unit: ChartUnit,
    pub(crate) shape: ChartShape,
    pub(crate) since: i64,
    /// Seconds of a step.
    pub(crate) step: i64,
    pub(crate) series: Vec<ChartSeries>,
    /// The text in the middle of the chart if all values are 0, such as `No errors in this period`.
    pub(crate) empty: &'static str,
    /// The chart of the same page whose table has these series, too; `None` if this one has a table of its own.
    pub(crate) table_of: Option<ChartTitle>,
}

/// How another chart is named.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChartTitle {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
}

/// A label of the horizontal axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ChartTick {
    /// Where it is, in percent of the width.
    pub(crate) at: f64,
    pub(crate) label: String,
}

impl ChartTick {
    /// The value of the attribute `text-anchor`.
    pub(crate) fn anchor(&self) -> &'static str {
        match self.at {
            at if at < TICK_MARGIN => "start",
            at if at > 100.0 - TICK_MARGIN => "end",
            _ => "middle",
        }
    }
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChartUnit {
    Number,
    Milliseconds,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChartShape {
    /// Bars, in which the series lie on each other.
    Bars,
    Lines,
}

impl Chart {
    /// The same chart with this text if all values are 0.
    pub(crate) fn with_empty(self, empty: &'static str) -> Self {
        Self { empty, ..self }
    }

    /// The same chart without a table, because that of another chart has its series.
    pub(crate) fn with_table_of(self, other: ChartTitle) -> Self {
        Self { table_of: Some(other), ..self }
    }

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

    /// Whether each step is a day, which begins at midnight UTC in every time zone.
    pub(crate) fn has_days(&self) -> bool {
        self.step >= DAY
    }

    /// Labels at round times (UTC). Those of days are below the middle of the bar of the day.
    pub(crate) fn ticks(&self) -> Vec<ChartTick> {
        let duration = i64::try_from(self.steps()).unwrap_or(0).saturating_mul(self.step);
        let is_wide = |span: &&i64| **span >= self.step && duration <= TICKS_MAX * **span;
        let span = TICK_SPANS.iter().find(is_wide).copied().unwrap_or(5 * DAY);
        let first = self.since + (-self.since).rem_euclid(span);
        let middle = if self.has_days() { self.step / 2 } else { 0 };
        (0..=TICKS_MAX)
            .map(|tick| first + tick * span)
            .take_while(|time| *time < self.since + duration)
            .map(|time| {
                let is_day = duration >= DAY && time % DAY == 0;
                let label = format::step_label(&time, if is_day { &DAY } else { &self.step });
                ChartTick { at: (time - self.since + middle) as f64 * 100.0 / duration as f64, label }
            })
            .collect()
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

    /// The shape of a series beside its name in the legend.
    pub(crate) fn swatch(&self, series: &ChartSeries) -> String {
        let (class, path) = match self.shape {
            ChartShape::Bars => ("bar", "M0 0H30V14H0z"),
            ChartShape::Lines => ("line", "M0 7H30"),
        };
        format!(r#"<path class="{class} {}" d="{path}"/>"#, series.class)
    }

    /// The shapes, without labels: grid and series. The script shows the values of a step from the table.
    pub(crate) fn svg(&self) -> String {
        let mut svg = String::new();
        for line in 0..=INTERVALS {
            let y = HEIGHT * f64::from(line) / f64::from(INTERVALS);
            let class = if line == INTERVALS { "axis" } else { "grid" };
            let _ = write!(svg, r#"<path class="{class}" d="M0 {y}H{WIDTH}"/>"#);
        }
        let mark = |tick: ChartTick| format!("M{:.1} {HEIGHT}v6", tick.at * WIDTH / 100.0);
        let marks: String = self.ticks().into_iter().map(mark).collect();
        let _ = write!(svg, r#"<path class="tick" d="{marks}"/>"#);
        match self.shape {
            ChartShape::Bars => self.write_bars(&mut svg),
            ChartShape::Lines => self.write_lines(&mut svg),
        }
        svg
    }

    fn write_bars(&self, svg: &mut String) {
        let (top, step_width) = (self.top(), WIDTH / self.steps().max(1) as f64);
        let (width, margin) = (step_width * BAR_SHARE, step_width * (1.0 - BAR_SHARE) / 2.0);
        let width = rounded(width);
        let mut bottoms = vec![HEIGHT; self.steps()];
        for series in &self.series {
            let (mut path, mut before) = (String::new(), (0.0, 0.0));
            for (step, bottom) in bottoms.iter_mut().enumerate() {
                let Some(value) = value(series, step).filter(|value| *value > 0.0) else { continue };
                let x = rounded(step as f64 * step_width + margin);
                // A unit is less than a pixel high.
                let height = (HEIGHT * value / top).round().max(BAR_HEIGHT_MIN).min(*bottom);
                // Relative to the bar before, which takes less than half of the bytes.
                let (right, down) = (rounded(x - before.0), *bottom - before.1);
                let _ = write!(path, "m{right} {down}v-{height}h{width}v{height}z");
                before = (x, *bottom);
                *bottom -= height;
            }
            if !path.is_empty() {
                let _ = write!(svg, r#"<path class="bar {}" d="{path}"/>"#, series.class);
            }
        }
    }

    fn write_lines(&self, svg: &mut String) {
        let (top, step_width) = (self.top(), WIDTH / self.steps().max(1) as f64);
        for series in &self.series {
            let points: Vec<_> = (0..series.values.len())
                .map(|step| {
                    let value = value(series, step)?;
                    Some(((step as f64 + 0.5) * step_width, HEIGHT * (1.0 - value / top)))
                })
                .collect();
            for (class, path) in [("line", line_path(&points)), ("dot", dot_path(&points))] {
                if !path.is_empty() {
                    let _ = write!(svg, r#"<path class="{class} {}" d="{path}"/>"#, series.class);
                }
            }
        }
    }
}

/// A number with one decimal at most.
fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// A small line without axes beside a number that says the same, so it is hidden from screen readers.
pub(crate) fn sparkline(values: &[Option<f64>]) -> String {
    const SPARK_WIDTH: f64 = 120.0;
    const SPARK_HEIGHT: f64 = 28.0;
    let top = values.iter().flatten().copied().filter(|value| value.is_finite()).fold(0.0, f64::max);
    let step_width = SPARK_WIDTH / values.len().saturating_sub(1).max(1) as f64;
    let scale = if top > 0.0 { (SPARK_HEIGHT - 2.0) / top } else { 0.0 };
    let points: Vec<_> = values
        .iter()
        .enumerate()
        .map(|(step, value)| {
            let value = value.filter(|value| value.is_finite())?;
            Some((step as f64 * step_width, SPARK_HEIGHT - 1.0 - value.max(0.0) * scale))
        })
        .collect();
    let (line, dots) = (line_path(&points), dot_path(&points));
    format!(
        "<svg class=\"spark\" viewBox=\"0 0 {SPARK_WIDTH} {SPARK_HEIGHT}\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
         <path class=\"line\" d=\"{line}\"/><path class=\"dot\" d=\"{dots}\"/></svg>"
    )
}

/// Where a value is drawn; `None` where there is none.
type LinePoint = Option<(f64, f64)>;

/// A line through points, interrupted where there is none.
fn line_path(points: &[LinePoint]) -> String {
    let mut path = String::new();
    for (at, (x, y)) in drawn(points) {
        if is_drawn(points, at.checked_sub(1)) {
            let _ = write!(path, "L{x:.1} {y:.1}");
        } else if is_drawn(points, Some(at + 1)) {
            let _ = write!(path, "M{x:.1} {y:.1}");
        }
    }
    path
}

/// A line without length, which is drawn as a dot, at each point that has no neighbour: a line alone would not show it.
fn dot_path(points: &[LinePoint]) -> String {
    let mut path = String::new();
    for (at, (x, y)) in drawn(points) {
        if !is_drawn(points, at.checked_sub(1)) && !is_drawn(points, Some(at + 1)) {
            let _ = write!(path, "M{x:.1} {y:.1}h0");
        }
    }
    path
}

fn drawn(points: &[LinePoint]) -> impl Iterator<Item = (usize, (f64, f64))> {
    points.iter().enumerate().filter_map(|(at, point)| point.map(|point| (at, point)))
}

fn is_drawn(points: &[LinePoint], at: Option<usize>) -> bool {
    at.and_then(|at| points.get(at)).is_some_and(Option::is_some)
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
