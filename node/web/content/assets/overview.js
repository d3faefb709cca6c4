import { actions } from "./act.js";
import { watch } from "./live.js";

watch(`/events${location.search}`);
actions();
