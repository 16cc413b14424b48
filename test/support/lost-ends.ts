/**
 * Ends test files on workerd if their own end is lost. If the last promise of a file resolves within a lost actor, the
 * runtime drops the message that the file has ended, and the run would wait forever.
 */
import type { PoolOptions, PoolWorker, TestProject, VitestPluginContext } from "vitest/node";

/** Milliseconds of silence that prove that a file runs no test. The time limit of each test is shorter. */
const SILENCE_MS = 120_000;
/** Milliseconds of silence that prove a lost end if each test has ended. A file reports its end at once. */
const ENDED_SILENCE_MS = 5_000;

/** Watches the runtimes of a project. Put it behind the plugin that brings them. */
export function lostEnds() {
  return {
    name: "lost-ends",
    configureVitest({ project }: VitestPluginContext) {
      const { poolRunner } = project.config;
      if (poolRunner === undefined) throw new Error("No plugin before this one brings a pool.");
      const createPoolWorker = (options: PoolOptions) =>
        watched(poolRunner.createPoolWorker(options), options.project);
      project.config.poolRunner = { name: poolRunner.name, createPoolWorker };
    },
  };
}

/** Ends the files of a worker that is silent: as failed, if a test of them has not ended. Its next files get a new runtime. */
function watched(worker: PoolWorker, project: TestProject): PoolWorker {
  const [send, on] = [worker.send.bind(worker), worker.on.bind(worker)];
  const listeners = new Map<string, (message: { type?: string }) => void>();
  let files: readonly string[] = [];
  let start: Parameters<PoolWorker["send"]>[0] | undefined;
  let isLost = false;
  let timer: NodeJS.Timeout | undefined;
  const tell = (message: object) => listeners.get("message")?.(message);
  const openFiles = () => {
    const ended = project.vitest.state
      .getTestModules()
      .filter((module) => module.project === project && !["queued", "pending"].includes(module.state()));
    return files.filter((file) => !ended.some(({ moduleId }) => moduleId === file));
  };
  const end = () => {
    const open = openFiles();
    const error = new Error(`Nothing was heard for ${SILENCE_MS / 1_000} s of ${files.join(", ")}.`);
    files = [];
    isLost = true;
    tell({ ...response("testfileFinished"), ...(open.length > 0 && { error }) });
  };
  const endIfAllEnded = () => {
    if (openFiles().length === 0) end();
    else timer = setTimeout(end, SILENCE_MS - ENDED_SILENCE_MS);
  };
  const wait = () => {
    clearTimeout(timer);
    timer = files.length === 0 ? undefined : setTimeout(endIfAllEnded, ENDED_SILENCE_MS);
  };
  /** Replaces the runtime, which still waits for the end of its last file. */
  const restart = async () => {
    for (const [event, listener] of listeners) worker.off(event, listener);
    await worker.stop();
    await worker.start();
    const { promise: started, resolve } = Promise.withResolvers<void>();
    for (const [event, listener] of [...listeners]) {
      const next = (message: { type?: string }) => {
        if (event === "message" && message.type === "started") resolve();
        listener(message);
      };
      listeners.set(event, next);
      on(event, next);
    }
    if (start !== undefined) send(start);
    await started;
    isLost = false;
  };
  worker.send = (message) => {
    if (message.type === "start") start = message;
    if (isLost && message.type === "stop") return tell(response("stopped"));
    if (message.type === "run") files = message.context.files.map(({ filepath }) => filepath);
    const pass = () => {
      wait();
      send(message);
    };
    if (!isLost) return pass();
    const fail = (error: unknown) => {
      clearTimeout(timer);
      tell({ ...response("testfileFinished"), error });
    };
    clearTimeout(timer);
    timer = setTimeout(fail, SILENCE_MS, new Error("The new runtime did not start."));
    restart().then(pass, fail);
  };
  worker.on = (event, callback) => {
    const listener =
      event === "message"
        ? (message: { type?: string }) => {
            if (message.type === "testfileFinished") files = [];
            wait();
            callback(message);
          }
        : callback;
    listeners.set(event, listener);
    on(event, listener);
  };
  return worker;
}

function response(type: string) {
  return { type, __vitest_worker_response__: true };
}
