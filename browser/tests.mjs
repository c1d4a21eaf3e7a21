// All tests of the console in a browser; `browser/run` starts this.

import "./developer.mjs";
import "./operator.mjs";
import "./charts.mjs";
import "./try_it.mjs";
import "./hostile_texts.mjs";
import "./every_page.mjs";
import "./without_mouse_or_script.mjs";

import { runAll } from "./suite.mjs";

await runAll(process.argv.slice(2));
