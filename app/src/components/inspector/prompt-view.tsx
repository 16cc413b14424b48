/** The assembled prompt of a turn by part, with tokens, and the memories that it used. */
import type { TurnPrompt, TurnView } from "../../../../src/client/index.ts";
import { amountsText } from "../../format.ts";
import { missingText, PARTS } from "../../inspector/prompt-texts.ts";
import { TurnMemories } from "../memory/turn-memories.tsx";
import { CallPrompt } from "./call-prompt.tsx";
import { OperatorsOnly } from "./operators-only.tsx";
import { PromptContent } from "./prompt-content.tsx";

export function PromptView({ turn, call }: { turn: TurnView; call: number | undefined }) {
  return (
    <OperatorsOnly what="the prompt of a turn">
      <CallPrompt turn={turn} call={call} view="prompt">
        {(prompt) => <Prompt prompt={prompt} />}
      </CallPrompt>
    </OperatorsOnly>
  );
}

function Prompt({ prompt }: { prompt: TurnPrompt }) {
  return (
    <div data-testid="prompt" data-call={prompt.call} className="space-y-4">
      <p className="text-xs text-muted">
        {prompt.model} · call {prompt.call} of {prompt.calls} · {amountsText({ tokens: prompt.tokens })},
        estimated. {missingText(prompt)}
      </p>
      <PartBar prompt={prompt} />
      <PartTable prompt={prompt} />
      <PromptContent request={prompt.request} />
      <TurnMemories turnId={prompt.turnId} />
    </div>
  );
}

function PartBar({ prompt: { parts, tokens } }: { prompt: TurnPrompt }) {
  return (
    <div aria-hidden="true" className="flex h-3 gap-px overflow-hidden rounded-full bg-line">
      {parts.map(({ name, tokens: own }) => (
        <span
          key={name}
          className={PARTS[name].bar}
          style={{ width: `${(own / Math.max(1, tokens)) * 100}%` }}
        />
      ))}
    </div>
  );
}

function PartTable({ prompt: { parts, tokens } }: { prompt: TurnPrompt }) {
  return (
    <div className="overflow-hidden rounded-xl border border-line bg-surface">
      <table className="w-full text-sm">
        <thead className="text-left text-xs text-muted">
          <tr>
            <th className="px-3 py-2 font-normal">Part</th>
            <th className="px-3 py-2 font-normal max-sm:hidden">Content</th>
            <th className="px-3 py-2 text-right font-normal">Items</th>
            <th className="px-3 py-2 text-right font-normal">Tokens</th>
            <th className="px-3 py-2 text-right font-normal">Share</th>
          </tr>
        </thead>
        <tbody>
          {parts.map(({ name, tokens: own, count }) => (
            <tr key={name} data-testid="prompt-part" data-part={name} className="border-t border-line">
              <th scope="row" className="px-3 py-1.5 text-left font-normal">
                <span
                  aria-hidden="true"
                  className={`mr-2 inline-block size-2.5 rounded-sm ${PARTS[name].bar}`}
                />
                {PARTS[name].text}
              </th>
              <td className="px-3 py-1.5 text-muted max-sm:hidden">{PARTS[name].detail}</td>
              <td className="px-3 py-1.5 text-right tabular-nums">{count}</td>
              <td className="px-3 py-1.5 text-right tabular-nums">{own.toLocaleString()}</td>
              <td className="px-3 py-1.5 text-right text-muted tabular-nums">
                {Math.round((own / Math.max(1, tokens)) * 100)} %
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
