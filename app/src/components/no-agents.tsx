/** Instructions for a server without agents. */
const example = `curl -X POST ${window.location.origin}/api/agents \\
  -H 'content-type: application/json' \\
  -d '{"id": "guide", "persona": {"identity": {"systemPrompt": "You are a helpful guide."}}}'`;

export function NoAgents() {
  return (
    <div className="rounded-xl border border-line bg-surface p-5">
      <h3 className="font-medium">No agents yet</h3>
      <p className="mt-1 text-sm text-muted">Create one, then reload this page:</p>
      <pre className="mt-3 overflow-x-auto rounded-lg bg-sunken p-3 font-mono text-xs leading-relaxed">
        {example}
      </pre>
    </div>
  );
}
