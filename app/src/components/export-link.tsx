/** Downloads the file of an agent or of a conversation. */
import { Icon } from "./icon.tsx";

interface ExportLinkProps {
  of: "agents" | "conversations";
  id: string;
}

export function ExportLink({ of, id }: ExportLinkProps) {
  return (
    <a
      href={`/api/${of}/${encodeURIComponent(id)}/export`}
      download={`${id}.jsonl`}
      data-testid="export"
      className="inline-flex items-center gap-2 rounded-lg border border-line px-3 py-1.5 text-sm font-medium hover:border-accent"
    >
      <Icon name="down" />
      Export
    </a>
  );
}
