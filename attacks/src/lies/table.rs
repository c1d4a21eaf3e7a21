//! Tables of the outcomes of calls, by mix of nodes and lie.

use std::collections::BTreeMap;

use testkit::matrix::{CellReport, MethodFigures, NodeMix};

/// Prints the lines that a cell has crossed, as soon as it has ended.
pub(super) fn print_crossed(report: &CellReport) {
    let lie = report.lie.as_deref().unwrap_or("honest");
    for text in &report.crossed {
        println!("CROSSED {} | {lie} | {} | {text}", report.mix.name, report.chain);
    }
}

/// Prints a table for each mix: a line for each lie, and one for each of its methods with anything but true answers. Returns
/// whether no line was crossed.
pub(super) fn print(reports: &[CellReport]) -> bool {
    for mix in NodeMix::ALL.iter().chain(&NodeMix::HONEST) {
        let of_mix: Vec<_> = reports.iter().filter(|report| report.mix == *mix).collect();
        if !of_mix.is_empty() {
            print_mix(mix, &of_mix);
        }
    }
    let crossed = reports.iter().filter(|report| !report.crossed.is_empty()).count();
    let mut total = MethodFigures::default();
    reports.iter().for_each(|report| total.add(&report.total()));
    println!("\n{} cells, {crossed} of them across a line", reports.len());
    print_line("all", "", &total, "");
    crossed == 0
}

fn print_mix(mix: &NodeMix, reports: &[&CellReport]) {
    let decide = match (mix.liars_decide(), mix.honest_decide()) {
        (true, _) => "the liars are a quorum",
        (_, true) => "the honest nodes are a quorum",
        _ => "nobody is a quorum",
    };
    println!(
        "\n{:<38}{:<40}{:>7}{:>7}{:>7}{:>9}{:>7}{:>8}",
        format!("{} ({decide})", mix.name),
        "",
        "calls",
        "wrong",
        "failed",
        "decided",
        "after",
        "failed"
    );
    let mut total = MethodFigures::default();
    for (lie, reports) in by_lie(reports) {
        let mut methods: BTreeMap<&str, MethodFigures> = BTreeMap::new();
        for (method, figures) in reports.iter().flat_map(|report| &report.methods) {
            methods.entry(method).or_default().add(figures);
        }
        let mut sum = MethodFigures::default();
        methods.values().for_each(|figures| sum.add(figures));
        total.add(&sum);
        let is_crossed = reports.iter().any(|report| !report.crossed.is_empty());
        print_line(lie, "all methods", &sum, if is_crossed { "  CROSSED" } else { "" });
        for (method, figures) in methods {
            if figures.wrong + figures.failed + figures.decided + figures.wrong_after + figures.failed_after
                > 0
            {
                print_line("", method, &figures, "");
            }
        }
    }
    print_line("all lies", "", &total, "");
}

fn by_lie<'a>(reports: &[&'a CellReport]) -> BTreeMap<&'a str, Vec<&'a CellReport>> {
    let mut lies: BTreeMap<&str, Vec<&CellReport>> = BTreeMap::new();
    for report in reports {
        lies.entry(report.lie.as_deref().unwrap_or("honest")).or_default().push(report);
    }
    lies
}

fn print_line(lie: &str, method: &str, figures: &MethodFigures, end: &str) {
    let MethodFigures { calls, wrong, failed, decided, wrong_after, failed_after } = figures;
    println!(
        "{lie:<38}{method:<40}{calls:>7}{wrong:>7}{failed:>7}{decided:>9}{wrong_after:>7}{failed_after:>8}{end}"
    );
}
