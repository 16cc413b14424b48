/** The contract of shells over a tree of files: each shell must pass it. A real machine has more programs and files than the embedded shell. */
import { describe, expect, test } from "vitest";
import { applyChanges } from "../../src/agents/workspace/core/command-changes.ts";
import { type FileMode, WorkingTree } from "../../src/agents/workspace/core/working-tree.ts";
import { ActorCommands } from "../../src/agents/workspace/shell/commands.ts";
import {
  type CommandState,
  MAX_OUTPUT,
  type Shell,
  type ShellOptions,
  type ShellResult,
} from "../../src/agents/workspace/shell/shell.ts";
import { oidOf } from "../../src/git/objects.ts";
import { defineSkill } from "../../src/library/skills/skill.ts";
import { sensitiveFiles } from "../../src/policy/globs.ts";

const encode = (text: string) => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

const FILES: Record<string, readonly [string, FileMode]> = {
  "a.txt": ["one\ntwo\n", "100644"],
  "link.txt": ["a.txt", "120000"],
  "src/run.sh": ["echo run $1\n", "100755"],
  linked: ["src", "120000"],
  dangling: ["new.txt", "120000"],
  "src/b.txt": ["b\n", "100644"],
};

const SECRETS: typeof FILES = {
  ".env": ["secret\n", "100644"],
  "src/key.pem": ["secret\n", "100644"],
};
/** Files beside the secrets. */
const BESIDE: typeof FILES = {
  ".env.example": ["b\n", "100644"],
  "to-env": [".env", "120000"],
  "src/up": ["..", "120000"],
};

/** Returns the tree of the contract's files, and the oids that were read. */
function treeOfFiles(more: typeof FILES = {}) {
  const reads: string[] = [];
  const files = { ...FILES, ...more };
  const paths = new Map<string, string>();
  const base = new Map(
    Object.entries(files).map(([path, [text, mode]]) => {
      const oid = oidOf({ type: "blob", content: encode(text) });
      paths.set(oid, path);
      return [path, { oid, mode }];
    }),
  );
  const blob = async (oid: string) => {
    const path = paths.get(oid) ?? "";
    reads.push(path);
    return encode(files[path]?.[0] ?? "");
  };
  return { tree: new WorkingTree(base, blob), reads };
}

interface ContractOptions {
  /** The folder of the files. */
  root?: string;
  /** The folder of skills. */
  skillsRoot?: string;
  /** The shell runs programs of the machine in a copy of the files. */
  isMachine?: boolean;
  /** Also runs commands that take seconds; `true` by default. */
  hasLongCommands?: boolean;
}

export function shellContract(
  name: string,
  shell: Shell,
  {
    root = "/workspace",
    skillsRoot = "/skills",
    isMachine = false,
    hasLongCommands = true,
  }: ContractOptions = {},
): void {
  const workspace = { tenant: "local", id: "conv:contract" };
  const exec = (tree: WorkingTree, command: string, options: Partial<ShellOptions> = {}) =>
    shell.exec(tree, command, { workspace, timeoutMs: 10_000, ...options });
  const run = async (command: string, options: Partial<ShellOptions> = {}) => {
    const { tree, reads } = treeOfFiles();
    const result = await exec(tree, command, options);
    const files: Record<string, string> = {};
    for (const path of tree.changes.keys())
      files[path] = tree.entry(path) === undefined ? "(deleted)" : decode((await tree.file(path)).content);
    return { ...result, files, tree, reads };
  };
  const output = ({ exitCode, stdout, stderr }: ShellResult) => ({ exitCode, stdout, stderr });

  describe(`the shell ${name}`, () => {
    test.each([
      ["pwd; ls", `${root}\na.txt\ndangling\nlink.txt\nlinked\nsrc\n`],
      ["cat link.txt | tail -n 1", "two\n"],
      ["grep -rn b src", "src/b.txt:1:b\nsrc/run.sh"],
      ["cd src && ./run.sh there", "run there\n"],
      ["echo x >/dev/null; echo $((6 * 7))", "42\n"],
      ["for f in src/*; do basename $f; done | sort -r", "run.sh\nb.txt\n"],
      ["printf 'b\\na\\n' > $TMPDIR/list; sort $TMPDIR/list", "a\nb\n"],
    ])("SHELL-1 %s", async (command, stdout) => {
      const { files, ...result } = await run(command);
      if (command.startsWith("grep")) expect(result.stdout).toContain("src/b.txt:1:b\n");
      else expect(output(result)).toEqual({ exitCode: 0, stdout, stderr: "" });
      expect(files).toEqual({});
    });

    if (!isMachine) {
      test("a command that reads one file fetches only this file and the links", async () => {
        const { reads } = await run("cat src/b.txt; echo new > c.txt");
        expect(new Set(reads)).toEqual(new Set(["src/b.txt", "link.txt", "linked", "dangling"]));
      });
    }

    test.each<[string, Record<string, string>]>([
      ["echo three >> a.txt", { "a.txt": "one\ntwo\nthree\n" }],
      ["echo three >> link.txt", { "a.txt": "one\ntwo\nthree\n" }],
      ["echo three | tee -a link.txt", { "a.txt": "one\ntwo\nthree\n" }],
      ["cp src/b.txt link.txt", { "a.txt": "b\n" }],
      ["echo y > linked/y.txt", { "src/y.txt": "y\n" }],
      ["cd linked && echo k >> b.txt", { "src/b.txt": "b\nk\n" }],
      ["mkdir linked/deep; echo d > linked/deep/d.txt", { "src/deep/d.txt": "d\n" }],
      ["echo n > dangling", { "new.txt": "n\n" }],
      ["echo x > link.txt", { "a.txt": "x\n" }],
      ["sed -i s/run/ran/ src/run.sh", { "src/run.sh": "echo ran $1\n" }],
      ["rm -r src", { "src/run.sh": "(deleted)", "src/b.txt": "(deleted)" }],
      ["mv src/b.txt c.txt", { "src/b.txt": "(deleted)", "c.txt": "b\n" }],
      ["cp -r src copy", { "copy/b.txt": "b\n", "copy/run.sh": "echo run $1\n" }],
      ["mkdir -p x/y && echo z > x/y/z", { "x/y/z": "z\n" }],
      ["rm a.txt; mkdir a.txt; echo 1 > a.txt/in", { "a.txt": "(deleted)", "a.txt/in": "1\n" }],
      ["rm -r src; echo file > src", { "src/run.sh": "(deleted)", "src/b.txt": "(deleted)", src: "file\n" }],
      ["echo one > a.txt; echo two >> a.txt; mkdir empty", {}],
      ["ln -s src/b.txt to-b", { "to-b": "src/b.txt" }],
    ])("changes files: %s", async (command, expected) => {
      const { files, exitCode } = await run(command);
      expect(files).toEqual(expected);
      expect(exitCode).toBe(0);
    });

    const GREET = defineSkill({
      files: {
        "SKILL.md": "---\nname: greet\ndescription: Greets.\n---\nGreet.\n",
        "scripts/greet.sh": "echo Hello, $1\n",
      },
    });
    const useSkill = `cd ${skillsRoot}; bash greet/scripts/greet.sh Ada; tail -n 1 greet/SKILL.md; find . -type f | wc -l | tr -d ' '`;
    const spoilSkill = `echo spoilt > greet/SKILL.md; mkdir more; echo > more/a.txt; rm greet/scripts/greet.sh; chmod 0 ${skillsRoot}`;

    test("I14 SKILL-5 CONTAINER-5 a command has the files of the skills, and changes there end with the command", async () => {
      for (const command of [`${useSkill}; ${spoilSkill}`, useSkill]) {
        const { files, exitCode, stdout } = await run(command, { skills: [GREET] });
        expect({ exitCode, stdout, files }).toEqual({
          ...{ exitCode: 0, stdout: "Hello, Ada\nGreet.\n2\n", files: {} },
        });
      }
      expect((await run(`find ${skillsRoot} -type f`)).stdout).toBe("");
    });

    test("keeps and sets the modes of files", async () => {
      const { tree } = await run(
        "echo more >> src/run.sh; echo 1 > new.sh; chmod +x new.sh a.txt; ln -s a.txt l",
      );
      const modes = ["src/run.sh", "new.sh", "a.txt", "l"].map((path) => tree.entry(path)?.mode);
      expect(modes).toEqual(["100755", "100755", "100755", "120000"]);
    });

    test("reports the exit code and errors", async () => {
      expect(output(await run("cat none; exit 3"))).toEqual({
        ...{ exitCode: 3, stdout: "", stderr: "cat: none: No such file or directory\n" },
      });
      expect((await run("no-such-command")).exitCode).toBe(127);
      expect((await run("if then")).exitCode).toBe(2);
    });

    if (!isMachine) {
      test("E26 SHELL-1 a command reaches no network, no other files and no variables of the process", async () => {
        for (const command of [
          "curl http://127.0.0.1",
          "wget http://127.0.0.1",
          "cat /etc/passwd /proc/self/environ",
        ])
          expect((await run(command)).exitCode, command).not.toBe(0);
        const { stdout } = await run("env; ls /");
        expect(stdout).not.toMatch(/PROVIDER|NODE|root/);
      });

      test("SHELL-1 files outside of the repository are not kept", async () => {
        const { files, tree } = await run(
          "echo 1 > /tmp/x; echo 2 > ../y; mkdir /etc; echo 3 > /etc/z; ln -s /tmp/x out",
        );
        expect(files).toEqual({ out: "/tmp/x" });
        await expect(tree.read("out")).rejects.toMatchObject({ options: { rule: "sandbox" } });
      });
    }

    test.each([
      ["ls -A; cat a.txt .*; grep -r b src | sort; find . -name '.env*'", ".env.example\n"],
      ["test -e .env || echo none; cp -r . $TMPDIR/all; ls -A $TMPDIR/all", "none\n.env.example\n"],
      ["rm -r src; echo $?", "0\n"],
    ])("E26 SHELL-4 shows no sensitive files, and keeps them: %s", async (command, stdout) => {
      const { tree } = treeOfFiles({ ...SECRETS, ...BESIDE });
      const guarded = tree.without(sensitiveFiles());
      const result = await exec(guarded, command);
      expect(result.stdout).toContain(stdout);
      expect(result.stdout).not.toContain("secret");
      for (const path of Object.keys(SECRETS)) expect(guarded.changes.has(path), path).toBe(false);
    });

    const reads = [
      "cat .env",
      "cat to-env || true",
      "while read line; do echo $line; done < src/up/.env",
      "grep secret src/key.pem",
      "cat src/../.env",
      "cd src; cat ../.env; true",
    ];
    if (isMachine)
      test.each(reads)("E26 SHELL-4 CONTAINER-2 finds no sensitive file: %s", async (command) => {
        const { tree } = treeOfFiles({ ...SECRETS, ...BESIDE });
        const { stdout, stderr } = await exec(tree.without(sensitiveFiles()), command);
        expect([stdout, stderr]).toEqual([
          expect.not.stringContaining("secret"),
          expect.stringContaining("No such file"),
        ]);
      });

    test.each([
      ...(isMachine ? [] : reads),
      "echo x > .env",
      "echo x >> to-env",
      "cp a.txt src/id_rsa",
      "mv a.txt .env",
      "ln -s a.txt .env",
      "ln a.txt q.pem",
      "echo x > $TMPDIR/f; cp $TMPDIR/f src/up/new.key",
    ])("E26 SHELL-4 is denied to open a sensitive file: %s", async (command) => {
      const { tree } = treeOfFiles({ ...SECRETS, ...BESIDE });
      const guarded = tree.without(sensitiveFiles());
      await expect(exec(guarded, `echo 1 > new.txt; ${command}`)).rejects.toMatchObject({
        ...{ code: "PERMISSION_DENIED", options: { rule: "sensitive-file" } },
      });
      expect([...guarded.changes]).toEqual([]);
    });

    test("E27 SHELL-2 long output is cut", async () => {
      const { stdout, isCut } = await run("seq 1 60000");
      expect(stdout.length).toBe(MAX_OUTPUT);
      expect(isCut).toBe(true);
      expect((await run("seq 1 10")).isCut).toBeUndefined();
    });

    test.each(["sleep 60", "echo x > a.txt; sleep 60", "while true; do sleep 0.01; done"])(
      "SHELL-3 a time-out changes nothing: %s",
      async (command) => {
        const { exitCode, stderr, files } = await run(command, { timeoutMs: 300 });
        expect(exitCode).toBe(124);
        expect(stderr).toContain("did not end within 300 ms");
        expect(files).toEqual({});
      },
    );

    test("SHELL-2 an endless loop ends", async () => {
      expect((await run("while true; do :; done", { timeoutMs: 1_000 })).exitCode).not.toBe(0);
    });

    if (hasLongCommands) {
      test.each([
        "for (i = 0; i < 99999; i++) for (j = 0; j < 99999; j++) for (k = 0; k < 99999; k++) x++",
        "for (i = 0; i < 99999; i++) for (j = 0; j < 99999; j++) for (k = 0; k < 99999; k++);",
      ])("SHELL-2 SHELL-3 loops within loops end, and change nothing: %s", async (loops) => {
        const command = `echo x > a.txt; awk 'BEGIN { ${loops} }' || true`;
        expect(await run(command, { timeoutMs: 500 })).toMatchObject({ exitCode: 124, files: {} });
      });

      test.each([
        [
          "seq 90000 | awk '{k=$1%10; if ($1>5) {s[k]+=$1*2; n[k]++}} END {print s[0], n[0], s[9], n[9]}'",
          "810090000 9000 810072000 9000\n",
        ],
        [
          "cat n.txt | jq -s 'map({a: ., b: (. % 7)}) | map(select(.b > 2)) | map(.a) | map(. + 1) | add'",
          "2314337142\n",
        ],
        [
          "grep -c a large.txt; sed s/a/b/ large.txt | sort | uniq | wc -l; wc -c < large.txt",
          "4200\n1\n4204200\n",
        ],
      ])("SHELL-2 ordinary commands over large files end: %s", async (command, stdout) => {
        const files =
          "cd $TMPDIR; seq 90000 > n.txt; for i in {1..4200}; do printf '%01000d' 0; echo; done | tr 0 a > large.txt";
        expect(await run(`${files}; ${command}`, { timeoutMs: 60_000 })).toMatchObject({
          exitCode: 0,
          stdout,
        });
      });
    }

    test("SHELL-3 a cancelled command changes nothing", async () => {
      const { tree } = treeOfFiles();
      const stop = new AbortController();
      const running = exec(tree, "echo x > a.txt; sleep 60", {
        timeoutMs: 60_000,
        signal: stop.signal,
      });
      setTimeout(() => stop.abort(), 50);
      await expect(running).rejects.toMatchObject({ code: "CANCELLED" });
      expect(tree.status()).toEqual([]);
    });

    if (!isMachine) {
      test("SHELL-2 a loop over a large file ends without a clock", async () => {
        const loop = "for i in {1..5000}; do sha256sum f; done > /dev/null";
        const command = `cd $TMPDIR; seq 90000 > n; cat n n n n n > f; ${loop}`;
        expect(await run(command, { timeoutMs: 60_000 })).toMatchObject({
          ...{ exitCode: 124, stderr: expect.stringContaining("10000000 steps") },
        });
      });

      test.each(["cancelled", "late"])(
        "SHELL-3 a command that is %s while its files are taken changes nothing",
        async (how) => {
          const stop = new AbortController();
          const slow = new WorkingTree(new Map([["unread", { oid: "unread", mode: "100644" }]]), async () => {
            // The command has ended: it has not read the file.
            if (how === "cancelled") stop.abort();
            else await new Promise((resolve) => setTimeout(resolve, 600));
            return encode("unread\n");
          });
          const running = exec(slow, "mv unread moved", { timeoutMs: 500, signal: stop.signal });
          if (how === "cancelled") await expect(running).rejects.toMatchObject({ code: "CANCELLED" });
          else expect(await running).toMatchObject({ exitCode: 124 });
          expect(slow.status()).toEqual([]);
        },
      );
    }

    test("TREE-6 a command with too many files changes nothing, and deletes them", async () => {
      const { tree } = treeOfFiles();
      const before = new Map(
        Array.from({ length: 10_000 }, (_, n) => [
          `n/${n}`,
          { content: encode("x"), mode: "100644" as const },
        ]),
      );
      const full = tree.with(before);
      const runIn = (command: string) => exec(full, command, { timeoutMs: 60_000 });
      await expect(runIn("rm src/b.txt")).rejects.toMatchObject({ code: "TOO_LARGE" });
      expect(full.changes).toEqual(before);
      expect(await runIn("rm -r n src/b.txt")).toMatchObject({ exitCode: 0 });
      expect(full.status()).toEqual([{ path: "src/b.txt", change: "deleted" }]);
    });

    test("a file that Git refuses fails the command", async () => {
      const { tree } = treeOfFiles();
      const nested = isMachine
        ? "git init --quiet sub; echo x > sub/file; cd sub; git add file; git -c user.name=a -c user.email=a@b.c commit --quiet --message=x"
        : "mkdir .git; echo x > .git/config";
      const command = `rm a.txt; echo x > c.txt; ${nested}`;
      await expect(exec(tree, command)).rejects.toMatchObject({ code: "INVALID_INPUT" });
      expect(tree.status(), "SHELL-3").toEqual([]);
    });

    test("SHELL-2 a command cannot pretend a time-out", async () => {
      const { exitCode, files } = await run(
        "echo 'execution exceeded execution deadline' >&2; echo x > c.txt",
      );
      expect([exitCode, files]).toEqual([0, { "c.txt": "x\n" }]);
    });

    describe("commands in the background", () => {
      let last = 0;
      // Returns the end of a command.
      async function endOf(look: () => Promise<CommandState>) {
        const state = () =>
          look().then(
            (seen) => seen.state,
            () => "failed",
          );
        await expect.poll(state, { timeout: 20_000 }).not.toBe("running");
        const seen = await look();
        return seen.state === "ended" ? seen : expect.fail("The command was lost.");
      }
      const commands = shell.commands ?? new ActorCommands(shell, () => undefined);
      // Starts a command over the files of the contract.
      async function started(command: string, options: Partial<ShellOptions> = {}) {
        const { tree } = treeOfFiles();
        const place = { workspace, timeoutMs: 60_000, ...options };
        const id = String(++last);
        await commands.start(tree, id, command, place);
        const look = () => commands.look(id, place);
        const ended = () => endOf(look);
        return { tree, id, place, look, ended, stop: () => commands.stop(id, place) };
      }

      test("BACKGROUND-1 a command runs on after its start, and leaves the tree until its changes are applied", async () => {
        const { tree, look, ended } = await started("sleep 1; cat a.txt; echo x > c.txt; rm src/b.txt");
        expect((await look()).state).toBe("running");
        const { result, changes } = await ended();
        expect(result).toEqual({ exitCode: 0, stdout: "one\ntwo\n", stderr: "" });
        expect(tree.status()).toEqual([]);
        expect(await applyChanges(tree, changes)).toEqual([]);
        expect(tree.status()).toEqual([
          { path: "c.txt", change: "added" },
          { path: "src/b.txt", change: "deleted" },
        ]);
        expect((await ended()).result.exitCode).toBe(0);
      });

      test("I14 SKILL-5 CONTAINER-5 a command has the files of the skills, and none of them is a change", async () => {
        const { ended } = await started(`${useSkill}; ${spoilSkill}`, { skills: [GREET] });
        const { result, changes } = await ended();
        expect(result).toMatchObject({ exitCode: 0, stdout: "Hello, Ada\nGreet.\n2\n" });
        expect(changes).toEqual([]);
      });

      test("BACKGROUND-3 changes of other paths stay, and a path that changed is a conflict", async () => {
        const { tree, ended } = await started(
          "echo mine > a.txt; rm src/b.txt; echo new > d.txt; echo mine > e.txt",
        );
        const { changes } = await ended();
        const write = (to: WorkingTree, path: string, text: string) => to.write(path, encode(text));
        const beside = tree.fork();
        await write(beside, "other.txt", "other\n");
        await write(beside, "a.txt", "mine\n");
        expect(await applyChanges(beside, changes)).toEqual([]);
        expect(beside.status().map(({ path }) => path)).toEqual([
          ...["a.txt", "d.txt", "e.txt", "other.txt", "src/b.txt"],
        ]);
        await write(tree, "src/b.txt", "theirs\n");
        await write(tree, "d.txt", "theirs\n");
        tree.drop(["a.txt"]);
        const before = new Map(tree.changes);
        expect(await applyChanges(tree, changes)).toEqual(["a.txt", "d.txt", "src/b.txt"]);
        expect(new Map(tree.changes)).toEqual(before);
      });

      test("SHELL-3 a command that is late, or that is stopped, leaves no changes", async () => {
        const late = await started("echo x > c.txt; sleep 60", { timeoutMs: 300 });
        expect(await late.ended()).toMatchObject({ result: { exitCode: 124 }, changes: [] });
        const stopped = await started("echo x > c.txt; sleep 60");
        await stopped.stop();
        expect(await stopped.look()).toEqual({ state: "lost" });
        await stopped.stop();
      });

      test("BACKGROUND-2 an unknown command is lost", async () => {
        const { place } = await started("true");
        expect(await commands.look("op_unknown", place)).toEqual({ state: "lost" });
      });

      test("E26 SHELL-4 a command that leaves a sensitive file is denied", async () => {
        const { tree } = treeOfFiles(SECRETS);
        const guarded = tree.without(sensitiveFiles());
        const place = { workspace, timeoutMs: 10_000 };
        await commands.start(guarded, "op_denied", "ls -A; echo x > .env; echo y > c.txt", place);
        const end = async () =>
          applyChanges(guarded, (await endOf(() => commands.look("op_denied", place))).changes);
        await expect(end()).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
        expect(guarded.status()).toEqual([]);
      });
    });
  });
}
