/** The actor shell with a core other than a conversation: a ledger in SQLite that works off its debts. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { newOperationId } from "../../src/agents/base/mailbox/operation-id.ts";
import type { ActorCore, Commit } from "../../src/agents/base/runtime/actor-core.ts";
import { ActorShell } from "../../src/agents/base/runtime/shell.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import type { NewEnvelope } from "../../src/protocol/envelope.ts";
import { DramatisError, type ErrorData } from "../../src/shared/errors.ts";

interface State {
  entries: readonly string[];
  /** Number of entries ever written. */
  seq: number;
}
type Signal = { add: string } | { lost: string; code: string };
type Change = { added: readonly string[]; envelopes: readonly NewEnvelope[] };
interface Committed extends Commit<State>, Change {}
type Effect = { entry: string };

const to = { kind: "ledger", tenant: "t", id: "other" };

const unreadable = () => new DramatisError("UNAVAILABLE", "The disk is silent.", { retriable: true });

const errors = vi.spyOn(console, "error");
beforeEach(() => void errors.mockImplementation(() => undefined));
afterEach(() => void errors.mockReset());

function open() {
  const database = new NodeSqlDatabase();
  database.run("CREATE TABLE ledger (n INTEGER PRIMARY KEY AUTOINCREMENT, entry TEXT NOT NULL)");
  database.run("CREATE TABLE copies (due TEXT NOT NULL)");
  const rows = () => database.all<{ entry: string }>("SELECT entry FROM ledger").map(({ entry }) => entry);
  const written = () => database.all<{ seq: number }>("SELECT seq FROM sqlite_sequence")[0]?.seq ?? 0;
  const log: string[] = [];
  const platform = {
    armed: 0,
    sends: [] as string[],
    isDown: false,
    isUnreadable: false,
    breaksOnPublish: false,
    losesAnswers: false,
    isFull: false,
    due: 1_000,
    sending: Promise.resolve(),
  };
  const core: ActorCore<State, Signal, Change, Committed, Effect> = {
    load() {
      if (platform.isUnreadable) throw unreadable();
      return { entries: rows(), seq: written() };
    },
    plan(_state, signals) {
      const added = signals.map((signal) => ("add" in signal ? signal.add : `lost ${signal.lost}`));
      if (added.includes("refused")) throw new DramatisError("CONFLICT", "This entry is refused.");
      if (added.includes("bad")) throw new TypeError("This entry cannot be written.");
      const envelope = () => ({ operationId: newOperationId(), to, type: "copy", body: null });
      return { added, envelopes: added.filter((entry) => entry === "send").map(envelope) };
    },
    write(before, change) {
      if (platform.isDown) throw new DramatisError("UNAVAILABLE", "The disk is full.", { retriable: true });
      if (change.added.length === 0) return null;
      if (before.seq !== written()) throw new Error("The state is not the newest.");
      if (change.added.includes("clear")) database.run("DELETE FROM ledger");
      const kept = change.added.includes("clear") ? [] : before.entries;
      for (const entry of change.added) database.run("INSERT INTO ledger (entry) VALUES (?)", entry);
      return { ...change, before, state: { entries: [...kept, ...change.added], seq: written() } };
    },
    envelopes: ({ envelopes }) => envelopes,
    withdrawals: ({ added }) => added.filter((entry) => entry === "send").map(() => ({ to, type: "older" })),
    dueIn: ({ entries }) => (entries.length === 0 ? null : platform.due),
    effectsOf: ({ entries }) => entries.map((entry) => ({ entry })),
    effectsAfter: (commits, state) =>
      commits
        .flatMap(({ added }) => added)
        .filter((entry) => state.entries.includes(entry))
        .map((entry) => ({ entry })),
    endedBy: ([first], state) =>
      (first?.before.entries ?? []).filter((entry) => !state.entries.includes(entry)),
    isCurrent(state) {
      if (platform.isUnreadable) throw unreadable();
      return state.seq === written();
    },
    concerns: (outcome, { entry }) => "add" in outcome && outcome.add === entry,
    abandon: ([first], { code }: ErrorData) =>
      first !== undefined && "add" in first ? [{ lost: first.add, code }] : [],
  };
  const clock = new VirtualClock();
  const shell = new ActorShell(core, {
    clock,
    database: {
      transaction: (body) => {
        const result = database.transaction(body);
        if (platform.losesAnswers) throw new Error("The answer of the commit is lost.");
        return result;
      },
      isInTransaction: () => database.isInTransaction(),
    },
    armWakeup: async () => {
      platform.armed += 1;
    },
    armCopies: (dueIn) => void database.run("INSERT INTO copies (due) VALUES (?)", String(dueIn)),
    send: ({ type }) => {
      if (platform.isFull) throw new DramatisError("QUEUE_OVERFLOW", "It is full.", { retriable: true });
      platform.sends.push(type);
      return platform.sending;
    },
    withdraw: ({ type }) => void platform.sends.push(`no ${type}`),
    publish: ({ added }) => {
      log.push(`published ${added}; stored ${rows().length}; in memory ${shell.state?.entries.length}`);
      if (platform.breaksOnPublish) throw new Error("The reader is broken.");
    },
    effects: {
      start: (effects) => {
        for (const { entry } of effects) log.push(`started ${entry}`);
      },
      abort: (keys) => {
        for (const key of keys) log.push(`aborted ${key}`);
      },
    },
  });
  const copies = () => database.all<{ due: string }>("SELECT due FROM copies").map(({ due }) => due);
  return { shell, clock, database, log, platform, rows, copies };
}

describe("the shell of an actor", () => {
  test("RUN-1 RUN-2 a commit is stored and in memory before it is published, and published before its effects start", async () => {
    const { shell, log, platform } = open();
    await shell.commit([{ add: "a" }, { add: "b" }]);
    expect(log).toEqual(["published a,b; stored 2; in memory 2", "started a", "started b"]);
    expect(platform.armed).toBe(1);
    await shell.commit([{ add: "c" }]);
    expect(platform.armed, "one wake-up serves both").toBe(1);
    await shell.commit([]);
    expect(log).toHaveLength(5);
  });

  test("RECORDS-1 a commit arms the copies in its transaction, for the earlier of the wake-ups before and after it", async () => {
    const { shell, copies, platform } = open();
    await shell.commit([{ add: "a" }]);
    platform.due = 90_000;
    await shell.commit([{ add: "b" }]);
    await shell.commit([{ add: "clear" }]);
    expect(copies()).toEqual(["1000", "90000", "90000"]);
    platform.isDown = true;
    expect(() => shell.commit([{ add: "c" }])).toThrow("disk");
    expect(copies()).toHaveLength(3);
  });

  test("RUN-2 a refused commit and a failed commit change no state", async () => {
    const { shell, log, platform, rows } = open();
    expect(() => shell.commit([{ add: "a" }, { add: "refused" }])).toThrow("refused");
    platform.isDown = true;
    expect(() => shell.commit([{ add: "a" }])).toThrow("disk");
    expect([shell.state?.entries, rows(), log, platform.armed]).toEqual([[], [], [], 0]);
  });

  test("STAGE-1 an envelope and a wake-up roll back with the transaction that stages them", async () => {
    const { shell, database, platform, rows, log } = open();
    expect(() =>
      database.transaction(() => {
        const unit = shell.begin();
        unit.stage([{ add: "send" }]);
        unit.stage([{ add: "b" }]);
        throw new Error("The caller fails.");
      }),
    ).toThrow("caller");
    expect([rows(), shell.state?.entries, log]).toEqual([[], [], []]);
    const armed = platform.armed;
    const unit = shell.begin();
    database.transaction(() => unit.stage([{ add: "send" }]));
    expect([shell.state?.entries, log]).toEqual([[], []]);
    await unit.release();
    const published = [...log];
    await unit.release();
    expect(log, "a second release").toEqual(published);
    expect([rows(), shell.state?.entries]).toEqual([["send"], ["send"]]);
    expect(platform.armed, "the arming that rolled back does not count").toBe(armed + 1);
  });

  test("STAGE-2 failing signals in a later stage leave the earlier stage unchanged", async () => {
    const { shell, database, rows } = open();
    const unit = shell.begin();
    database.transaction(() => {
      unit.stage([{ add: "a" }]);
      expect(() => unit.stage([{ add: "refused" }])).toThrow("refused");
    });
    await unit.release();
    expect([rows(), shell.state?.entries]).toEqual([["a"], ["a"]]);
  });

  test("STAGE-2 the stages of a unit write one wake-up", async () => {
    const { shell, database, platform } = open();
    const unit = shell.begin();
    database.transaction(() => {
      for (const add of ["a", "b", "c"]) unit.stage([{ add }]);
    });
    await unit.release();
    expect(platform.armed).toBe(1);
  });

  test("STAGE-4 a release skips effects that a later stage of the unit has ended", async () => {
    const { shell, database, log } = open();
    const unit = shell.begin();
    database.transaction(() => {
      unit.stage([{ add: "a" }]);
      unit.stage([{ add: "clear" }]);
    });
    await unit.release();
    expect(log.filter((line) => !line.startsWith("published"))).toEqual(["started clear"]);
  });

  test("STAGE-5 a commit inside an open transaction is refused, and leaves no trace", async () => {
    const { shell, database, log, rows } = open();
    database.transaction(() => {
      expect(() => shell.commit([{ add: "a" }])).toThrow("unit of work");
    });
    expect([rows(), shell.state?.entries, log]).toEqual([[], [], []]);
  });

  test("STAGE-6 a stored commit that reported a failure continues as committed", async () => {
    const { shell, platform, rows, log } = open();
    platform.losesAnswers = true;
    await shell.commit([{ add: "a" }]);
    platform.losesAnswers = false;
    expect(log).toEqual(["published a; stored 1; in memory 1", "started a"]);
    await shell.commit([{ add: "b" }]);
    expect([rows(), shell.state?.entries]).toEqual([
      ["a", "b"],
      ["a", "b"],
    ]);
  });

  test("STAGE-7 a unit with a rolled-back stage takes no other stage, and releases no effect", async () => {
    const { shell, database, rows, log } = open();
    const unit = shell.begin();
    database.transaction(() => {
      unit.stage([{ add: "a" }]);
      const undone = () =>
        database.transaction(() => {
          unit.stage([{ add: "b" }]);
          throw new Error("The caller fails.");
        });
      expect(undone).toThrow("caller");
      expect(() => unit.stage([{ add: "c" }])).toThrow("rolled back");
    });
    await expect(unit.release()).rejects.toThrow("rolled back");
    expect([rows(), shell.state?.entries, log]).toEqual([["a"], ["a"], []]);
  });

  test("STAGE-7 STAGE-9 a unit released while the store cannot be read fails with the store's error, and is published later", async () => {
    const { shell, clock, database, log, platform } = open();
    const unit = shell.begin();
    database.transaction(() => unit.stage([{ add: "a" }]));
    platform.isUnreadable = true;
    await expect(unit.release()).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(log).toEqual([]);
    await clock.advance(1_000);
    expect(log).toEqual([]);
    platform.isUnreadable = false;
    expect(shell.state?.entries, "loaded again").toEqual(["a"]);
    await clock.advance(1_000);
    expect(log).toEqual(["published a; stored 1; in memory 1", "started a"]);
  });

  test("STAGE-7 a stage after a rolled-back transaction is refused, also outside of a transaction", () => {
    const { shell, database, rows } = open();
    const unit = shell.begin();
    const undone = () =>
      database.transaction(() => {
        unit.stage([{ add: "a" }]);
        throw new Error("The caller fails.");
      });
    expect(undone).toThrow("caller");
    expect(() => unit.stage([{ add: "b" }])).toThrow("rolled back");
    expect(rows()).toEqual([]);
  });

  test("STAGE-5 a unit is released after its transaction, once, and takes no stage afterwards", async () => {
    const { shell, database } = open();
    const early = shell.begin();
    let released: Promise<void> = Promise.resolve();
    database.transaction(() => {
      early.stage([{ add: "a" }]);
      released = early.release();
      released.catch(() => undefined);
    });
    await expect(released).rejects.toThrow("after its transaction");
    const unit = shell.begin();
    await unit.release();
    expect(() => unit.stage([{ add: "b" }])).toThrow("released");
  });

  test("STAGE-1 state that is read in an open transaction is dropped if the transaction rolls back", () => {
    const { shell, database } = open();
    expect(() =>
      database.transaction(() => {
        shell.begin().stage([{ add: "a" }]);
        expect(shell.state?.entries).toHaveLength(1);
        throw new Error("The caller fails.");
      }),
    ).toThrow("caller");
    expect(shell.state?.entries).toEqual([]);
  });

  test("STAGE-8 units that were stored but not released stop one later unit at most", () => {
    const { shell, database, rows } = open();
    expect(shell.state?.entries).toEqual([]);
    database.transaction(() => shell.begin().stage([{ add: "a" }]));
    const stage = () => database.transaction(() => shell.begin().stage([{ add: "b" }]));
    expect(stage).toThrow("not the newest");
    stage();
    expect(rows()).toEqual(["a", "b"]);
  });

  test("STAGE-8 after a commit that may be stored, memory equals the store, or reading it fails", async () => {
    const { shell, clock, log, platform, rows } = open();
    expect(shell.state?.entries).toEqual([]);
    Object.assign(platform, { losesAnswers: true, isUnreadable: true });
    expect(shell.report([{ add: "a" }])).toBe(false);
    expect(rows()).toEqual(["a"]);
    platform.losesAnswers = false;
    expect(() => shell.state).toThrow("silent");
    expect(() => shell.dueIn).toThrow("silent");
    expect(() => shell.startAll()).toThrow("silent");
    platform.isUnreadable = false;
    expect([shell.state?.entries, shell.dueIn]).toEqual([["a"], platform.due]);
    await clock.advance(1_000);
    expect(log, "STAGE-9").toEqual(["published a; stored 1; in memory 1"]);
  });

  test("STAGE-9 a stored commit whose transaction reports a failure is published before the next commit", async () => {
    const { shell, database, log } = open();
    const commit = () =>
      shell.commitBy((unit) => {
        database.transaction(() => unit.stage([{ add: "a" }]));
        throw new Error("The answer of the commit is lost.");
      });
    expect(commit).toThrow("lost");
    await shell.commit([{ add: "b" }]);
    expect(log[0]).toMatch(/^published a;/);
    expect(log[1]).toMatch(/^published b;/);
  });

  test("STAGE-9 of kept commits that exclude each other, only the stored one is published", async () => {
    const { shell, clock, database, log, platform } = open();
    const unit = shell.begin();
    const undone = () =>
      database.transaction(() => {
        unit.stage([{ add: "undone" }]);
        throw new Error("The caller fails.");
      });
    expect(undone).toThrow("caller");
    platform.isUnreadable = true;
    await expect(unit.release()).rejects.toThrow();
    platform.isUnreadable = false;
    const second = shell.begin();
    database.transaction(() => second.stage([{ add: "a" }]));
    platform.isUnreadable = true;
    await expect(second.release()).rejects.toThrow();
    platform.isUnreadable = false;
    await clock.advance(1_000);
    expect(log.filter((line) => line.startsWith("published"))).toEqual([
      "published a; stored 1; in memory 1",
    ]);
  });

  test("STAGE-9 a deleted actor publishes no kept commit", async () => {
    const { shell, clock, database, log, platform } = open();
    const unit = shell.begin();
    database.transaction(() => unit.stage([{ add: "a" }]));
    platform.isUnreadable = true;
    await expect(unit.release()).rejects.toThrow();
    platform.isUnreadable = false;
    shell.forget();
    await clock.advance(5_000);
    expect(log).toEqual([]);
  });

  test("STAGE-8 RUN-4 an outcome that is reported while memory cannot be compared with the store is retried", () => {
    const { shell, platform, rows } = open();
    expect(shell.state?.entries).toEqual([]);
    Object.assign(platform, { losesAnswers: true, isUnreadable: true });
    expect(shell.report([{ add: "a" }])).toBe(false);
    expect(shell.report([{ add: "b" }])).toBe(false);
    expect(shell.unsaved).toEqual([{ add: "a" }, { add: "b" }]);
    Object.assign(platform, { losesAnswers: false, isUnreadable: false });
    expect(shell.report([{ add: "b" }])).toBe(true);
    expect(rows()).toEqual(["a", "b"]);
  });

  test("RUN-3 a reader that fails does not stop the effects, and each heartbeat starts all of them", async () => {
    const { shell, log, platform } = open();
    platform.breaksOnPublish = true;
    await shell.commit([{ add: "a" }]);
    await shell.commit([{ add: "b" }]);
    expect(log.filter((line) => line.startsWith("started"))).toEqual(["started a", "started b"]);
    shell.startAll();
    expect(log.slice(-2)).toEqual(["started a", "started b"]);
  });

  test("EFFECT-5 a commit aborts effects that its state no longer needs, after it is published", async () => {
    const { shell, log } = open();
    await shell.commit([{ add: "a" }, { add: "b" }]);
    log.length = 0;
    await shell.commit([{ add: "clear" }]);
    expect(log).toEqual([
      "published clear; stored 1; in memory 1",
      "aborted a",
      "aborted b",
      "started clear",
    ]);
  });

  test("RUN-4 an outcome that cannot be committed now is committed later, and holds back its own effect only", async () => {
    const { shell, log, platform, rows } = open();
    await shell.commit([{ add: "a" }, { add: "b" }]);
    platform.isDown = true;
    shell.report([{ add: "a" }]);
    log.length = 0;
    shell.startAll();
    expect(log).toEqual(["started b"]);
    shell.retryUnsaved();
    expect(rows()).toEqual(["a", "b"]);
    platform.isDown = false;
    shell.retryUnsaved();
    shell.retryUnsaved();
    expect(rows()).toEqual(["a", "b", "a"]);
  });

  test("RUN-4 an outcome that cannot be abandoned now is kept, and abandoned later", () => {
    const { shell, platform, rows } = open();
    platform.isDown = true;
    expect(shell.report([{ add: "bad" }])).toBe(false);
    platform.isDown = false;
    shell.retryUnsaved();
    expect(rows()).toEqual(["lost bad"]);
    shell.retryUnsaved();
    expect(rows()).toEqual(["lost bad"]);
  });

  test("RUN-4 an outcome that is reported again, alone or with others, is committed once", () => {
    const { shell, platform, rows } = open();
    const [first, second] = [{ add: "a" }, { add: "b" }];
    platform.isDown = true;
    for (let time = 0; time < 3; time++) expect(shell.report([first])).toBe(false);
    platform.isDown = false;
    expect(shell.report([first, second])).toBe(true);
    shell.retryUnsaved();
    expect(rows()).toEqual(["a", "b"]);
  });

  test("RUN-7 signals that are due but cannot be committed are tried again a second later, not at once", async () => {
    const { shell, platform } = open();
    await shell.commit([{ add: "a" }]);
    platform.due = 0;
    expect(shell.dueIn).toBe(0);
    platform.isDown = true;
    shell.tick([{ add: "b" }]);
    expect(shell.dueIn).toBe(1_000);
    platform.isDown = false;
    shell.tick([{ add: "b" }]);
    expect(shell.dueIn).toBe(0);
  });

  test("RUN-6 a commit is acknowledged only when the wake-ups of its envelopes are armed", async () => {
    const { shell, platform } = open();
    let armed = () => {};
    platform.sending = new Promise((resolve) => {
      armed = resolve;
    });
    let isAcknowledged = false;
    const acknowledged = shell.commit([{ add: "send" }]).then(() => {
      isAcknowledged = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(isAcknowledged).toBe(false);
    armed();
    await acknowledged;
  });

  test.each(["refused", "bad"])("RUN-4 an outcome that can never be committed (%s) is abandoned", (entry) => {
    const { shell, rows } = open();
    shell.report([{ add: entry }]);
    shell.retryUnsaved();
    expect(rows()).toEqual([`lost ${entry}`]);
  });

  test("RUN-4 an outcome is abandoned if its envelopes have no room in the outbox, and the others continue", () => {
    const { shell, rows, platform } = open();
    platform.isFull = true;
    expect(shell.report([{ add: "send" }])).toBe(true);
    expect(shell.report([{ add: "a" }])).toBe(true);
    expect([rows(), shell.unsaved]).toEqual([["lost send", "a"], []]);
  });

  test("RUN-4 outcomes in the same report as an outcome without room are committed without it", () => {
    const { shell, rows, platform } = open();
    platform.isFull = true;
    expect(shell.report([{ add: "a" }, { add: "send" }, { add: "b" }])).toBe(true);
    expect([rows(), shell.unsaved]).toEqual([["a", "lost send", "b"], []]);
  });

  test("MAIL-22 a commit withdraws before it sends: withdrawn envelopes make room", () => {
    const { shell, platform } = open();
    shell.report([{ add: "send" }]);
    expect(platform.sends).toEqual(["no older", "copy"]);
  });
});
