import { watch } from "./live.js";
import { showOutput } from "./output.js";
import { showRipple } from "./ripple.js";

const job = location.pathname.replace(/\/$/, "");
watch(`${job}/events`);
showOutput(`${job}/output`);
showRipple();
