// The same script runs the page and its workers.

import { startPage } from "./page.js";
import { startWorker } from "./worker.js";

if (typeof document === "undefined") startWorker();
else void startPage();
