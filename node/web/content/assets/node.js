import { watch } from "./live.js";

watch(`${location.pathname.replace(/\/$/, "")}/events`);
