//! `chaingate import` as a user meets it: the real program, on files and directories, with an eye on what it says,
//! what it leaves, and its exit code.

#[path = "import/bad_input.rs"]
mod bad_input; // whatever it is, it is refused with a sentence that helps
#[path = "import/interrupt.rs"]
mod interrupt; // Ctrl-C
#[path = "import/kill.rs"]
mod kill; // kill -9, again and again
#[path = "import/output.rs"]
mod output; // messages of imports that go well
#[path = "import/program.rs"]
mod program; // the program, and where it works
#[path = "import/running.rs"]
mod running; // into an archive that a gateway serves
#[path = "import/two.rs"]
mod two; // two at once
