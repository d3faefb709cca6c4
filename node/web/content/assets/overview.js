import { watch } from "./live.js";

watch(`/events${location.search}`);
