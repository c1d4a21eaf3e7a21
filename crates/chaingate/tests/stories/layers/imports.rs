//! Reads the paths in the source files of a crate: which module uses which.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The path of a module from the root of its crate, which has the empty path.
type Module = Vec<String>;

/// A crate, without its tests.
pub(crate) struct Crate {
    /// The paths that each module names, from the root of the crate.
    paths: BTreeMap<Module, BTreeSet<Vec<String>>>,
    /// The imports of each module, which are also its re-exports: the local name, and the path that it stands for.
    imports: BTreeMap<Module, BTreeMap<String, Vec<String>>>,
}

impl Crate {
    pub(crate) fn read(src: &Path) -> Self {
        let mut files = BTreeMap::new();
        collect(src, &mut Vec::new(), &mut files);
        let modules: BTreeSet<Module> = files.keys().cloned().collect();
        let mut this = Self { paths: BTreeMap::new(), imports: BTreeMap::new() };
        for (module, text) in files {
            let (uses, rest) = split_uses(&text);
            let uses: Vec<_> = uses.iter().flat_map(|tree| expand(&[], tree)).collect();
            let imports = uses
                .iter()
                .filter_map(|(path, name)| Some((name.clone(), absolute(path, &module, &modules)?)));
            let imports: BTreeMap<_, _> = imports.collect();
            let inline = paths_in(&rest);
            let inline = inline.iter().filter_map(|path| absolute(path, &module, &modules));
            this.paths.insert(module.clone(), inline.chain(imports.values().cloned()).collect());
            this.imports.insert(module, imports);
        }
        this
    }

    /// Describes every circle. Imports between a module and the modules inside it do not count.
    pub(crate) fn circles(&self) -> Vec<String> {
        let mut levels: BTreeMap<Module, BTreeMap<String, BTreeMap<String, String>>> = BTreeMap::new();
        for (module, paths) in &self.paths {
            for path in paths {
                let target = self.module_of(path, 0);
                let common = module.iter().zip(&target).take_while(|(one, other)| one == other).count();
                if common < module.len() && common < target.len() {
                    let level = levels.entry(module[..common].to_vec()).or_default();
                    let edges = level.entry(module[common].clone()).or_default();
                    let example = format!("{} uses {}", module.join("::"), path.join("::"));
                    edges.entry(target[common].clone()).or_insert(example);
                }
            }
        }
        levels.values().flat_map(circles_of_level).collect()
    }

    /// The module that defines the item of a path, found through re-exports.
    fn module_of(&self, path: &[String], depth: usize) -> Module {
        let mut length = path.len();
        while length > 0 && !self.paths.contains_key(&path[..length]) {
            length -= 1;
        }
        let (module, item) = (path[..length].to_vec(), path.get(length));
        let reexported = item.and_then(|item| self.imports[&module].get(item));
        match reexported {
            // Bounded, because a name can be imported from where it is re-exported.
            Some(path) if depth < 8 => self.module_of(path, depth + 1),
            _ => module,
        }
    }
}

/// The circles among modules with the same parent.
fn circles_of_level(edges: &BTreeMap<String, BTreeMap<String, String>>) -> Vec<String> {
    let mut circles = Vec::new();
    let mut done = BTreeSet::new();
    for start in edges.keys() {
        if let Some(circle) = way_back(start, edges)
            && circle.iter().all(|step| !done.contains(step))
        {
            done.extend(circle.iter().cloned());
            let next = circle.iter().cycle().skip(1);
            let steps = circle.iter().zip(next).map(|(from, to)| format!("  {}", edges[from][to]));
            circles.push(format!("{}\n{}", circle.join(" -> "), steps.collect::<Vec<_>>().join("\n")));
        }
    }
    circles
}

/// The shortest way from a module back to itself.
fn way_back(start: &str, edges: &BTreeMap<String, BTreeMap<String, String>>) -> Option<Vec<String>> {
    let mut ways = vec![vec![start.to_owned()]];
    let mut seen = BTreeSet::new();
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for way in ways {
            for next in edges.get(way.last()?).into_iter().flat_map(BTreeMap::keys) {
                if next == start {
                    return Some(way);
                }
                if seen.insert(next.clone()) {
                    longer.push([&way[..], std::slice::from_ref(next)].concat());
                }
            }
        }
        ways = longer;
    }
    None
}

fn collect(folder: &Path, module: &mut Module, files: &mut BTreeMap<Module, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if name == "tests" || name == "main" {
            continue;
        }
        if path.is_dir() {
            module.push(name);
            collect(&path, module, files);
            module.pop();
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let own = if name == "lib" { Vec::new() } else { [&module[..], &[name]].concat() };
            files.insert(own, code(&text));
        }
    }
}

/// The text without comments and without the tests at its end.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The trees of all `use` lines, and the text without them.
fn split_uses(text: &str) -> (Vec<String>, String) {
    let (mut uses, mut rest, mut tree) = (Vec::new(), String::new(), None::<String>);
    for line in text.lines() {
        let trimmed = line.trim();
        let begins = trimmed.strip_prefix("use ").or_else(|| {
            let (visibility, tree) = trimmed.split_once("use ")?;
            visibility.starts_with("pub").then_some(tree)
        });
        match (&mut tree, begins) {
            (Some(tree), _) => tree.push_str(trimmed),
            (None, Some(begin)) => tree = Some(begin.to_owned()),
            (None, None) => rest.extend([line, "\n"]),
        }
        if let Some(whole) = tree.take_if(|tree| tree.ends_with(';')) {
            uses.push(whole.trim_end_matches(';').to_owned());
        }
    }
    (uses, rest)
}

/// `a::{b, c as d}` → `a::b` as `b`, `a::c` as `d`.
fn expand(prefix: &[String], tree: &str) -> Vec<(Vec<String>, String)> {
    let tree = tree.trim();
    if let Some((head, group)) = tree.split_once('{') {
        let prefix = [prefix, &segments(head)].concat();
        let group = group.trim().strip_suffix('}').unwrap_or(group);
        return elements(group).into_iter().flat_map(|element| expand(&prefix, element)).collect();
    }
    let (path, name) = tree.split_once(" as ").unwrap_or((tree, ""));
    let mut path = [prefix, &segments(path)].concat();
    if path.len() > 1 {
        path.pop_if(|last| last == "self");
    }
    let Some(last) = path.last().cloned() else { return Vec::new() };
    vec![(path, if name.is_empty() { last } else { name.trim().to_owned() })]
}

/// The elements of a group, of which some are groups themselves.
fn elements(group: &str) -> Vec<&str> {
    let (mut elements, mut depth, mut begin) = (Vec::new(), 0, 0);
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                elements.push(&group[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    elements.push(&group[begin..]);
    elements.into_iter().filter(|element| !element.trim().is_empty()).collect()
}

fn segments(path: &str) -> Vec<String> {
    let segments = path.split("::").map(str::trim).filter(|segment| !segment.is_empty());
    segments.map(str::to_owned).collect()
}

/// Every path of at least two segments in a text.
fn paths_in(text: &str) -> Vec<Vec<String>> {
    let is_path = |character: char| character.is_alphanumeric() || matches!(character, '_' | ':');
    let words = text.split(|character| !is_path(character)).filter(|word| word.contains("::"));
    words.filter(|word| !word.starts_with(':')).map(segments).filter(|path| path.len() > 1).collect()
}

/// A path from the root of the crate; `None` if it leads into another crate, or is relative to something that was imported.
fn absolute(path: &[String], module: &Module, modules: &BTreeSet<Module>) -> Option<Vec<String>> {
    let (first, rest) = path.split_first()?;
    match first.as_str() {
        "crate" => Some(rest.to_vec()),
        "self" => Some([module, rest].concat()),
        "super" => {
            let (_, parent) = module.split_last()?;
            match rest.first().is_some_and(|next| next == "super") {
                true => absolute(rest, &parent.to_vec(), modules),
                false => Some([parent, rest].concat()),
            }
        }
        _ => {
            let inside = [module, path].concat();
            modules.contains(&inside[..=module.len()]).then_some(inside)
        }
    }
}
