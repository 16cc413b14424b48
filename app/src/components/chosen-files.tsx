/** The files of a draft, each with a button to remove it. */
import { Icon } from "./icon.tsx";

interface ChosenFilesProps {
  files: readonly File[];
  onRemove: (file: File) => void;
}

export function ChosenFiles({ files, onRemove }: ChosenFilesProps) {
  if (files.length === 0) return null;
  return (
    <ul aria-label="Attachments" className="mb-2 flex flex-wrap gap-2 px-1">
      {files.map((file, index) => (
        <li
          // biome-ignore lint/suspicious/noArrayIndexKey: two files may have the same name.
          key={`${index} ${file.name}`}
          className="flex max-w-full items-center gap-1 rounded-lg bg-sunken py-1 pr-1 pl-2.5 text-sm"
        >
          <span className="truncate">{file.name}</span>
          <button
            type="button"
            onClick={() => onRemove(file)}
            aria-label={`Remove ${file.name}`}
            className="rounded-md p-1 text-muted hover:bg-tint"
          >
            <Icon name="cross" />
          </button>
        </li>
      ))}
    </ul>
  );
}
