/** Fetches from a real git server, and pushes to it. */
import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import type { GitRepository } from "../../src/git/git-repository.ts";
import { fetched, pushed, type Remote } from "../../src/git/remote.ts";
import { type Parts, readAnnounced, readFetched, readPushed, SERVICES } from "../../src/git/wire.ts";
import { type RemotePorts, withRemote } from "../../src/http/base/git-remote.ts";
import { bytesOf } from "../../src/shared/byte-buffer.ts";
import { GIT_TOKEN, startGitServer } from "../support/git-server.ts";
import { AUTHOR, changes, gitFolder, gitWorld } from "../support/git-worlds.ts";

const server = await startGitServer();
afterAll(() => server.close());

const ports: RemotePorts = { mayReach: () => true, credentials: async () => [] };
/** A remote for one use. */
const remote = (name: string, more: Partial<RemotePorts> = {}): Remote => at(`${server.url}/${name}`, more);
const at = (address: string, more: Partial<RemotePorts> = {}): Remote => {
  const send = async function* (ask: (one: Remote) => AsyncIterable<Uint8Array>) {
    yield await withRemote(address, { ...ports, ...more }, async (one) =>
      bytesOf(ask(one), 64_000_000, () => new Error("Too long.")),
    );
  };
  return {
    announced: (service) => send((one) => one.announced(service)),
    ask: (service, body) => send((one) => one.ask(service, body)),
  };
};

async function commit(
  repository: GitRepository,
  files: Record<string, string | null>,
  branch = "main",
  parent?: string,
) {
  const head = await repository.head(branch);
  const parents = [parent ?? head].filter((oid) => oid != null);
  const made = await repository.commit(branch, head, {
    ...{ parents, changes: changes(files), message: "Change files", author: AUTHOR },
    at: Date.UTC(2026, 0, 2),
  });
  if (made === "moved") throw new Error("The branch has moved.");
  return made.oid;
}

const git = (name: string, ...args: string[]) =>
  execFileSync("git", ["-C", server.folder(name), ...args], { encoding: "utf8" }).trim();

describe("a push", () => {
  test("REMOTE-2 sends the history of a branch, then only new objects, and the same again changes nothing", async () => {
    const { repository } = await gitWorld();
    const first = await commit(repository, { "a.txt": "one", "src/b.txt": "two" });
    expect(await pushed(remote("new"), repository, "main", "main")).toBe(first);
    const second = await commit(repository, { "src/b.txt": "three" });
    const branch = await commit(repository, { "c.txt": "four" }, "topic", second);
    const { pack } = await repository.outgoing("topic", null, [first]);
    // Two commits, two root folders, one folder and two files.
    expect(new DataView(pack.buffer, pack.byteOffset).getUint32(8)).toBe(7);
    expect(await pushed(remote("new"), repository, "topic", "feature/topic")).toBe(branch);
    expect(await pushed(remote("new"), repository, "topic", "feature/topic")).toBe(branch);
    expect(git("new", "for-each-ref", "--format=%(refname) %(objectname)")).toBe(
      `refs/heads/feature/topic ${branch}\nrefs/heads/main ${first}`,
    );
    expect(git("new", "fsck", "--strict", "--full")).toBe("");
    expect(git("new", "show", "feature/topic:src/b.txt")).toBe("three");
  });

  test("REMOTE-2 never loses commits of the remote", async () => {
    const [{ repository: one }, { repository: two }] = [await gitWorld(), await gitWorld()];
    const theirs = await commit(one, { "a.txt": "theirs" });
    await pushed(remote("shared"), one, "main", "main");
    await commit(two, { "a.txt": "ours" });
    await expect(pushed(remote("shared"), two, "main", "main")).rejects.toMatchObject({ code: "CONFLICT" });
    expect(git("shared", "rev-parse", "main")).toBe(theirs);
  });

  test("REMOTE-2 a refusal of the remote is a conflict with its reason", async () => {
    const { repository } = await gitWorld();
    await commit(repository, { "a.txt": "one" });
    git("locked", "config", "receive.denyCurrentBranch", "refuse");
    git("locked", "config", "transfer.hideRefs", "refs/heads/hidden");
    await expect(pushed(remote("locked"), repository, "main", "hidden")).rejects.toMatchObject({
      code: "CONFLICT",
      message: expect.stringContaining("hidden"),
    });
    await expect(pushed(remote("locked"), repository, "absent", "main")).rejects.toMatchObject({
      code: "NOT_FOUND",
    });
  });

  test("REMOTE-2 any history arrives complete", async () => {
    let index = 0;
    const step = fc.record({
      branch: fc.constantFrom("main", "topic", "größe/日本🧀"),
      path: fc.constantFrom("a.txt", "src/a.txt", "src/deep/a.txt"),
      text: fc.constantFrom("x", "y", "z", null),
      push: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async (steps) => {
        const name = `any${index++}`;
        const { repository } = await gitWorld();
        await commit(repository, { "a.txt": "begin" });
        for (const { branch, path, text, push } of steps) {
          const parent = (await repository.head(branch)) ?? (await repository.head("main")) ?? undefined;
          await commit(repository, { [path]: text }, branch, parent);
          if (push) await pushed(remote(name), repository, branch, branch);
        }
        for (const { name: branch, oid } of await repository.branches())
          expect(await pushed(remote(name), repository, branch, branch)).toBe(oid);
        expect(git(name, "fsck", "--strict", "--full", "--connectivity-only")).toBe("");
        const { repository: copy } = await gitWorld();
        await copy.importHistory(await fetched(remote(name)));
        expect(await copy.branches()).toEqual(await repository.branches());
      }),
      { numRuns: 8 },
    );
  }, 120_000);
});

describe("a fetch", () => {
  test("REMOTE-1 adds the branches and tags of a repository that git wrote, and later only forward", async () => {
    const folder = gitFolder();
    folder.git("clone", "--quiet", server.folder("source"), "work");
    const work = (...args: string[]) => folder.git("-C", "work", ...args);
    folder.write("work/a.txt", Buffer.from("one\n"));
    work("add", ".");
    work("commit", "--quiet", "-m", "One");
    work("tag", "-a", "-m", "First", "v1");
    work("branch", "topic");
    work("push", "--quiet", "--all");
    work("push", "--quiet", "--tags");
    const { repository } = await gitWorld();
    await repository.importHistory(await fetched(remote("source"), "topic"));
    expect((await repository.branches()).map(({ name }) => name)).toEqual(["topic"]);
    await repository.importHistory(await fetched(remote("source")));
    expect((await repository.branches()).map(({ name }) => name)).toEqual(["main", "topic"]);
    await commit(repository, { "a.txt": "ours" });
    folder.write("work/a.txt", Buffer.from("theirs\n"));
    work("commit", "--quiet", "-am", "Two");
    work("push", "--quiet", "--all");
    await expect(
      fetched(remote("source")).then((bundle) => repository.importHistory(bundle)),
    ).rejects.toMatchObject({
      code: "CONFLICT",
    });
    folder[Symbol.dispose]();
  });

  test.each([
    ["absent", "NOT_FOUND"],
    ["moved", "INVALID_INPUT"],
    ["page", "INVALID_INPUT"],
    ["private-shop", "PERMISSION_DENIED"],
    ["empty", "INVALID_INPUT"],
  ])("REMOTE-3 of /%s is %s", async (name, code) => {
    await expect(fetched(remote(name))).rejects.toMatchObject({ code });
  });

  test("REMOTE-3 reads at most 8 MiB of a list", async () => {
    await expect(fetched(remote("flood"))).rejects.toMatchObject({
      ...{ code: "TOO_LARGE", message: expect.stringContaining(`${8 * 1_024 * 1_024} bytes`) },
    });
  });

  test("REMOTE-3 carries the secret of the host, and reaches only hosts of the list", async () => {
    const asked: string[] = [];
    const credentials = async ({ host }: URL) => {
      asked.push(host);
      return [{ header: "authorization", value: `Basic ${GIT_TOKEN}`, secret: GIT_TOKEN }];
    };
    const { repository } = await gitWorld();
    const oid = await commit(repository, { "a.txt": "one" });
    expect(await pushed(remote("private-shop", { credentials }), repository, "main", "main")).toBe(oid);
    expect(
      (await fetched(remote("private-shop", { credentials }))).references.map((each) => each.oid),
    ).toContain(oid);
    expect(new Set(asked)).toEqual(new Set([new URL(server.url).host]));
    for (const address of [
      ...["ftp://127.0.0.1/a", "http://user:pass@127.0.0.1/a", "http://git.example/a", "nothing"],
      ...[`${server.url}/a?b`, `${server.url}/a#b`, `${server.url}/a#`],
    ])
      await expect(fetched(at(address)), address).rejects.toMatchObject({ code: "INVALID_INPUT" });
    await expect(fetched(remote("source", { mayReach: () => false }))).rejects.toMatchObject({
      code: "PERMISSION_DENIED",
    });
  });

  test("REMOTE-3 shows no secret that the server sends back", async () => {
    const credentials = async () => [
      { header: "x-key", value: "key-of-the-shop", secret: "key-of-the-shop" },
    ];
    const echo = withRemote(`${server.url}/source`, { ...ports, credentials }, async (one) => {
      await readAnnounced(one.announced(SERVICES.fetch), SERVICES.fetch);
      await readFetched([Buffer.from("0008NAK\n001a\x03It is key-of-the-shop")]);
      return fetched(one);
    });
    await expect(echo).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: "The remote says: It is [redacted]",
    });
  });

  test("REMOTE-1 leaves out the branches of conversations of another deployment", async () => {
    const { repository } = await gitWorld();
    const name = "dramatis/conv-conv_01JD0000000000000000000000";
    await commit(repository, { "a.txt": "one" });
    await commit(repository, { "a.txt": "two" }, name);
    for (const branch of ["main", name]) await pushed(remote("mirror"), repository, branch, branch);
    expect((await fetched(remote("mirror"))).references.map((each) => each.name)).toEqual([
      "HEAD",
      "refs/heads/main",
    ]);
  });
});

test("GITWIRE-1 a message with many lines is refused at the first line of another form, or at the limit", async () => {
  const many = (text: string) => Buffer.from(text.repeat(400_000));
  for (const read of [
    () => readAnnounced([Buffer.from("001e# service=git-upload-pack\n0000"), many("0004")], SERVICES.fetch),
    () => readAnnounced([many("0005x")], SERVICES.fetch),
    () => readFetched([Buffer.from("0008NAK\n"), many("0005\x01")]),
    () => readPushed([Buffer.from("000eunpack ok\n"), many("0005x")], "refs/heads/main"),
  ])
    await expect(read()).rejects.toMatchObject({ code: "UNAVAILABLE" });
});

/** Yields the pieces of bytes that end at some places. All pieces have one buffer, which the next piece overwrites. */
function* inPieces(bytes: Uint8Array, ends: readonly number[]) {
  const held = new Uint8Array(bytes.length);
  let start = 0;
  for (const end of [...ends.filter((each) => each < bytes.length).toSorted((a, b) => a - b), bytes.length]) {
    held.set(bytes.subarray(start, end));
    yield held.subarray(0, end - start);
    start = end;
  }
}

test("GITWIRE-1 any bytes of a server, in any pieces, are read, or refused with a typed error", async () => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 200 }),
    fc
      .array(
        fc.constantFrom(
          "0000",
          "0008NAK\n",
          "001e# service=git-upload-pack\n",
          "0006\x01a",
          "0009\x01bcde",
          "0006\x02p",
          "0006\x03b",
          "000eunpack ok\n",
          "0001",
          "fff",
        ),
      )
      .map((parts) => Buffer.from(parts.join(""))),
  );
  const readers = [
    (parts: Parts) => readAnnounced(parts, SERVICES.fetch),
    readFetched,
    (parts: Parts) => readPushed(parts, "refs/heads/main"),
  ];
  await fc.assert(
    fc.asyncProperty(bytes, fc.array(fc.nat(200)), async (given, ends) => {
      for (const read of readers) {
        const outcome = (parts: Parts) => read(parts).catch((error: unknown) => ({ error }));
        const whole = await outcome([given]);
        expect(await outcome(inPieces(given, ends))).toEqual(whole);
        if (whole instanceof Object && "error" in whole)
          expect(whole.error).toMatchObject({ name: "DramatisError", code: "UNAVAILABLE" });
      }
    }),
  );
});

test("REMOTE-1 the pack is the data of all pieces", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.uint8Array({ minLength: 1, maxLength: 50 })),
      fc.array(fc.nat(2_000)),
      async (data, ends) => {
        const lines = data.map((each) => {
          const digits = (each.length + 5).toString(16).padStart(4, "0");
          return Buffer.concat([Buffer.from(`${digits}\x01`), each]);
        });
        const message = Buffer.concat([Buffer.from("0008NAK\n"), ...lines, Buffer.from("0000")]);
        expect(Buffer.from(await readFetched(inPieces(message, ends)))).toEqual(Buffer.concat(data));
      },
    ),
  );
});
