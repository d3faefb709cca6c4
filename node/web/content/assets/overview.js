import { watch } from "./live.js";

watch("/events");
