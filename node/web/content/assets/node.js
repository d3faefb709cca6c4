import { actions } from "./act.js";
import { watch } from "./live.js";

watch(`${location.pathname.replace(/\/$/, "")}/events`);
actions();
