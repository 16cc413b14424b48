/** Says that no language model is connected, and how to connect one. */
import { useState } from "react";
import { useSession } from "../session.ts";
import { store, stored } from "../storage.ts";
import { DialogPanel } from "./dialog-panel.tsx";
import { Icon } from "./icon.tsx";

const KEY = "dramatis.offline-seen";

/** The ways to connect a model, each with the lines of `.dev.vars` or `wrangler.jsonc`. */
const WAYS = [
  {
    title: "With a key",
    text: "Write a key into .dev.vars, and start the server again. ANTHROPIC_API_KEY and GEMINI_API_KEY work in the same way.",
    code: "OPENAI_API_KEY=sk-…",
  },
  {
    title: "On your machine, with Ollama",
    text: "Start Ollama, and write the address and a model that you have pulled into .dev.vars. Other servers that speak Chat Completions work in the same way.",
    code: "OPENAI_BASE_URL=http://127.0.0.1:11434/v1\nDRAMATIS_MODEL=local/llama3.2",
  },
  {
    title: "With Workers AI",
    text: "Add the binding to wrangler.jsonc. It needs a Cloudflare account, and no key.",
    code: '"ai": { "binding": "AI" }',
  },
] as const;

export function OfflineBanner() {
  const { isOffline } = useSession();
  const [isOpen, setOpen] = useState(false);
  const [isSeen, setSeen] = useState(() => stored(KEY) !== null);
  if (isOffline !== true || isSeen) return null;
  return (
    <div
      data-testid="offline-banner"
      className="flex shrink-0 items-center gap-x-3 bg-caution-tint py-1.5 pr-2 pl-4 text-sm"
    >
      <p className="min-w-0 flex-1">
        No language model is connected.{" "}
        <span className="max-sm:hidden">The offline model answers by fixed rules. </span>
        <button
          type="button"
          onClick={() => setOpen(true)}
          className="font-medium text-accent underline underline-offset-2"
        >
          Connect a model
        </button>
      </p>
      <button
        type="button"
        aria-label="Hide this note"
        onClick={() => {
          store(KEY, "1");
          setSeen(true);
        }}
        className="rounded-lg p-2 text-muted hover:text-ink"
      >
        <Icon name="cross" />
      </button>
      {isOpen && (
        <DialogPanel
          title="Connect a model"
          closeLabel="Close"
          testId="connect-model"
          onClose={() => setOpen(false)}
        >
          <div className="space-y-4 p-2">
            {WAYS.map(({ title, text, code }) => (
              <section key={title} className="space-y-1.5">
                <h3 className="text-sm font-medium">{title}</h3>
                <p className="text-sm text-muted">{text}</p>
                <pre className="overflow-x-auto rounded-lg bg-sunken p-2.5 font-mono text-xs">{code}</pre>
              </section>
            ))}
            <p className="text-sm text-muted">
              Until then the offline model answers agents without a model profile of their own. It labels its
              answers.
            </p>
          </div>
        </DialogPanel>
      )}
    </div>
  );
}
