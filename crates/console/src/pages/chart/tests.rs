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

#[test]
fn labels_of_time_are_evenly_spaced_and_end_with_the_last_step() {
    let labels = |steps: usize| chart(ChartShape::Bars, &[&vec![Some(1.0); steps]]).x_labels();
    assert_eq!(labels(15), ["17:00", "17:05", "17:10", "17:15"]);
    assert_eq!(labels(60), ["17:00", "17:15", "17:30", "17:45", "18:00"]);
    assert_eq!(labels(1), ["17:00", "17:01"]);
    let week = Chart { step: 3_600, ..chart(ChartShape::Bars, &[&[Some(1.0); 168]]) };
    let days = ["17 Nov", "18 Nov", "19 Nov", "20 Nov", "21 Nov", "22 Nov", "23 Nov", "24 Nov"];
    assert_eq!(week.x_labels(), days);
}

#[test]
fn bars_lie_on_each_other() {
    let svg = chart(ChartShape::Bars, &[&[Some(2.0), None], &[Some(2.0), Some(0.0)]]).svg();
    assert!(svg.contains(r#"d="M55.0 200.0v-100.0h390.0v100.0z""#), "{svg}");
    assert!(svg.contains(r#"d="M55.0 100.0v-100.0h390.0v100.0z""#), "{svg}");
}

#[test]
fn a_line_is_interrupted_where_there_is_no_value() {
    let svg = chart(ChartShape::Lines, &[&[Some(0.0), Some(4.0), None, Some(4.0)]]).svg();
    assert!(svg.contains(r#"d="M125.0 200.0h1L375.0 0.0M875.0 0.0h1""#), "{svg}");
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
