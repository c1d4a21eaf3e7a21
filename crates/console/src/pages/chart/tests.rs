use super::*;

fn chart(shape: ChartShape, values: &[&[Option<f64>]]) -> Chart {
    let series =
        |values: &&[Option<f64>]| ChartSeries { name: "answered", class: "s-ok", values: values.to_vec() };
    Chart {
        id: "calls",
        title: "Calls",
        unit: ChartUnit::Number,
        shape,
        since: 1_794_934_800,
        step: 60,
        series: values.iter().map(series).collect(),
        empty: "No calls in this period",
        table_of: None,
    }
}

#[test]
fn the_axis_ends_at_a_round_number_above_the_values() {
    for (largest, labels) in [
        (0.0, ["4", "3", "2", "1", "0"]),
        (3.0, ["4", "3", "2", "1", "0"]),
        (5.0, ["8", "6", "4", "2", "0"]),
        (100.0, ["100", "75", "50", "25", "0"]),
        (101.0, ["120", "90", "60", "30", "0"]),
        (1_000_000.0, ["1M", "750k", "500k", "250k", "0"]),
    ] {
        assert_eq!(chart(ChartShape::Lines, &[&[Some(largest)]]).y_labels(), labels);
    }
}

#[test]
fn labels_of_short_times_are_not_rounded() {
    let chart = Chart { unit: ChartUnit::Milliseconds, ..chart(ChartShape::Lines, &[&[Some(0.23)]]) };
    assert_eq!(chart.y_labels(), ["0.40 ms", "0.30 ms", "0.20 ms", "0.10 ms", "0 ms"]);
}

/// A chart of 7 or 30 days had two labels for some days, and the last label was that of tomorrow, outside of the plot.
#[test]
fn labels_of_time_are_round_different_and_inside_of_the_plot() {
    let chart = |since: i64, step: i64, steps: usize| {
        let values = vec![Some(1.0); steps];
        Chart { since, step, ..chart(ChartShape::Bars, &[&values]) }
    };
    // 2026-11-17T17:02:00Z
    let since = 1_794_934_920;
    let labels = |chart: &Chart| chart.ticks().into_iter().map(|tick| tick.label).collect::<Vec<_>>();
    assert_eq!(labels(&chart(since, 60, 15)), ["17:05", "17:10", "17:15"]);
    assert_eq!(labels(&chart(since, 60, 60)), ["17:10", "17:20", "17:30", "17:40", "17:50", "18:00"]);
    let hour = since / 3_600 * 3_600;
    assert_eq!(labels(&chart(hour, 3_600, 24)), ["20:00", "18 Nov", "04:00", "08:00", "12:00", "16:00"]);
    let week = labels(&chart(hour, 3_600, 7 * 24));
    assert_eq!(week, ["18 Nov", "19 Nov", "20 Nov", "21 Nov", "22 Nov", "23 Nov", "24 Nov"]);
    let day = since / 86_400 * 86_400;
    assert_eq!(labels(&chart(day, 86_400, 30)).len(), 6);
    for (step, steps) in [(60, 1), (60, 15), (60, 60), (3_600, 24), (3_600, 168), (86_400, 30)] {
        for since in (0..3 * 86_400).step_by(step as usize).map(|offset| day + offset).take(200) {
            let ticks = chart(since, step, steps).ticks();
            assert!(ticks.iter().all(|tick| (0.0..100.0).contains(&tick.at)), "{since} {step}: {ticks:?}");
            assert!(ticks.is_sorted_by(|before, after| before.at < after.at && before.label != after.label));
        }
    }
}

#[test]
fn bars_lie_on_each_other() {
    let svg = chart(ChartShape::Bars, &[&[Some(2.0), None], &[Some(2.0), Some(1.0)]]).svg();
    assert!(svg.contains(r#"d="m55 200v-100h390v100z""#), "{svg}");
    // The second bar is placed relative to the first one, at whose start the pen is.
    assert!(svg.contains(r#"d="m55 100v-100h390v100zm500 100v-50h390v50z""#), "{svg}");
}

/// A single value was a dash of half a pixel, and a single call beside thousands had no height.
#[test]
fn a_single_value_is_visible() {
    let line = chart(ChartShape::Lines, &[&[None, Some(4.0), None]]).svg();
    assert!(
        line.contains(r#"<path class="dot s-ok" d="M500.0 0.0h0"/>"#) && !line.contains("class=\"line"),
        "{line}"
    );
    let bars = chart(ChartShape::Bars, &[&[Some(1.0), Some(100_000.0)]]).svg();
    assert!(bars.contains("v-2h"), "{bars}");
    assert!(sparkline(&[None, Some(1.0), None]).contains("h0"));
}

#[test]
fn the_table_has_the_time_and_the_values_of_each_step() {
    let rows = chart(ChartShape::Bars, &[&[Some(1_234.0), None], &[Some(0.0), Some(1.0)]]).rows();
    let texts = |values: [&str; 2]| values.map(str::to_owned).to_vec();
    assert_eq!(rows[0], ("17 Nov 17:00".to_owned(), texts(["1,234", "0"])));
    assert_eq!(rows[1], ("17 Nov 17:01".to_owned(), texts(["–", "1"])));
}

#[test]
fn values_that_are_no_numbers_are_left_out() {
    for value in [f64::NAN, f64::INFINITY, -1.0] {
        let chart = chart(ChartShape::Bars, &[&[Some(value)]]);
        assert!(chart.is_empty());
        assert!(!chart.svg().contains("NaN") && !chart.svg().contains("inf"));
        assert!(!sparkline(&[Some(value), Some(1.0)]).contains("NaN"));
    }
}

#[test]
fn charts_without_steps_are_drawn() {
    let chart = chart(ChartShape::Lines, &[]);
    assert!(chart.is_empty() && chart.rows().is_empty());
    assert!(chart.svg().contains("grid"));
    assert!(sparkline(&[]).contains(r#"d="""#));
}
