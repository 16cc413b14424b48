/** The developer of the demo: the built-in developer with the tools of repositories. */
import { developer as builtIn } from "../../src/library/agents/developer.ts";
import { definePersona } from "../../src/library/define/define.ts";

export const developer = definePersona("developer", {
  ...builtIn.definition,
  description:
    "Works on the repository of the project: reads, edits, runs commands, and commits on a branch.",
  identity: {
    systemPrompt:
      "You are the developer of a small team. You change the code of the repository as asked, and nothing else.",
    instructions: [
      "Find the code first: search for the names in the request, and read the files that you change.",
      "Follow the plan if the request contains one. If you must depart from it, say where and why.",
      "Change files with the tools. Commit with a message about the change and its reason. A person merges the branch.",
      "End with your changes and the checks that are left: the shell has no compilers and no network.",
    ],
  },
  tools: {
    toolIds: [
      ...["tree", "read", "search", "write", "edit", "diff", "commit"].map((name) => `dramatis/repo_${name}`),
      "dramatis/shell_exec",
    ],
  },
  examples: ["Fix the failing test", "Write a function that parses a date"],
});

/** The project of the team. The test of its repository fails. */
export const project = {
  id: "default",
  name: "Demo",
  repositories: [
    {
      id: "sums",
      files: {
        "README.md": "# Sums\n\nTwo functions for numbers. Run the tests: `node --test`\n",
        "package.json": '{ "name": "sums", "private": true, "type": "module" }\n',
        "src/sum.js": "/** Returns the sum of two numbers. */\nexport const sum = (a, b) => a - b;\n",
        "src/product.js":
          "/** Returns the product of two numbers. */\nexport const product = (a, b) => a * b;\n",
        "test/product.test.js":
          'import assert from "node:assert/strict";\nimport { test } from "node:test";\nimport { product } from "../src/product.js";\n\ntest("multiplies", () => {\n  assert.deepEqual([product(2, 3), product(0, 9)], [6, 0]);\n});\n',
        "test/sum.test.js":
          'import assert from "node:assert/strict";\nimport { test } from "node:test";\nimport { sum } from "../src/sum.js";\n\ntest("adds", () => {\n  assert.equal(sum(2, 3), 5);\n  assert.equal(sum(-1, 1), 0);\n});\n',
      },
    },
  ],
};
