import { actions } from "./act.js";
import { copies } from "./copy.js";
import { watch } from "./live.js";
import { showOutput } from "./output.js";
import { showRipple } from "./ripple.js";

const job = location.pathname.replace(/\/$/, "");
const failed = new URLSearchParams(location.search).get("failed");
watch(`${job}/events${/^\d{1,7}$/.test(failed) ? `?failed=${failed}` : ""}`);
showOutput(job);
showRipple();
copies();
actions();
