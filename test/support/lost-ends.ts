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

/** Ends the files of a worker that is silent: as failed, if a test of them has not ended. */
function watched(worker: PoolWorker, project: TestProject): PoolWorker {
  const [send, on] = [worker.send.bind(worker), worker.on.bind(worker)];
  let files: readonly string[] = [];
  let tell: ((message: object) => void) | undefined;
  let timer: NodeJS.Timeout | undefined;
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
    tell?.({
      ...{ type: "testfileFinished", __vitest_worker_response__: true },
      ...(open.length > 0 && { error }),
    });
  };
  const endIfAllEnded = () => {
    if (openFiles().length === 0) end();
    else timer = setTimeout(end, SILENCE_MS - ENDED_SILENCE_MS);
  };
  const wait = () => {
    clearTimeout(timer);
    timer = files.length === 0 ? undefined : setTimeout(endIfAllEnded, ENDED_SILENCE_MS);
  };
  worker.send = (message) => {
    if (message.type === "run") files = message.context.files.map(({ filepath }) => filepath);
    wait();
    send(message);
  };
  worker.on = (event, callback) => {
    if (event !== "message") return on(event, callback);
    tell = callback;
    on(event, (message: { type?: string }) => {
      if (message.type === "testfileFinished") files = [];
      wait();
      callback(message);
    });
  };
  return worker;
}
