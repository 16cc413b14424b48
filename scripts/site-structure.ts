/**
 * The pages of the documentation site, in the order of its menu.
 *
 * SITE-1  Each page of `docs` is in one section. The index and the generated pages are no files of `docs`.
 * SITE-2  Reference pages are apart from guides. Numbered rules and capabilities are for contributors.
 */

export interface Section {
  title: string;
  pages: readonly Page[];
}

export interface Page {
  title: string;
  /** The name of the page on the site, without extension. */
  name: string;
  /** The Markdown file in the repository. Absent: `npm run docs:site` makes the page. */
  file?: string;
}

const doc = (name: string, title: string): Page => ({ title, name, file: `docs/${name}.md` });

export const SECTIONS: readonly Section[] = [
  {
    title: "Start",
    pages: [
      { title: "Dramatis", name: "index", file: "README.md" },
      doc("start", "Tutorial"),
      doc("examples", "Examples"),
      doc("concepts", "Concepts"),
    ],
  },
  {
    title: "Guides",
    pages: [
      doc("tools", "Write tools"),
      doc("skills", "Give agents skills"),
      doc("agents", "Let agents call agents"),
      doc("company", "Several agents in a conversation"),
      doc("memory", "Let agents remember"),
      doc("tasks", "Tasks of several steps"),
      doc("workspaces", "Agents that work on code"),
      doc("workflows", "Workflows"),
      doc("triggers", "Start work by time or webhook"),
      doc("react", "React"),
      doc("protocols", "OpenAI clients and the AI SDK"),
      doc("mcp", "MCP clients"),
      doc("agui", "AG-UI clients"),
      doc("a2a", "A2A"),
      doc("acp", "Editors"),
      doc("channels", "Slack, mail and others"),
      doc("providers", "Choose a model"),
      doc("libraries", "Libraries and versions"),
      doc("projects", "Projects and repositories"),
      doc("artifacts", "Artifacts"),
      doc("search", "Search turns, messages and events"),
      doc("record", "Find out why an agent acted"),
    ],
  },
  {
    title: "Operate",
    pages: [
      doc("deploy", "Deploy"),
      doc("scale", "Scale"),
      doc("location", "Place of data"),
      doc("security", "Security"),
      doc("privacy", "Privacy"),
      doc("console", "Console"),
      doc("inspector", "Inspector of turns"),
      doc("telemetry", "Telemetry"),
      doc("migrations", "Migrations"),
      doc("troubleshooting", "Troubleshooting"),
    ],
  },
  {
    title: "Test",
    pages: [
      doc("testing", "Test your agents"),
      doc("simulation", "Simulation"),
      doc("offline-model", "The offline model"),
    ],
  },
  {
    title: "Reference",
    pages: [
      doc("http", "HTTP and WebSocket API"),
      { title: "HTTP operations", name: "operations" },
      doc("cli", "Command line"),
      { title: "TypeScript API", name: "api/index" },
      doc("limits", "Limits"),
      doc("sessions", "Sessions"),
      doc("delivery", "Actors and delivery"),
      doc("engine", "The engine"),
      doc("ranking", "Ranking of memories"),
    ],
  },
  {
    title: "Background",
    pages: [
      doc("comparison", "Comparison"),
      doc("architecture", "Architecture"),
      doc("departures", "Departures"),
      { title: "Benchmarks", name: "benchmarks", file: "bench/README.md" },
      { title: "Changelog", name: "changelog", file: "CHANGELOG.md" },
    ],
  },
  {
    title: "Contribute",
    pages: [
      { title: "Contributing", name: "contributing", file: "CONTRIBUTING.md" },
      { title: "Rules", name: "spec" },
      { title: "Capabilities", name: "capabilities" },
    ],
  },
];
