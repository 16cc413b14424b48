/** A link that downloads a file of the API. With a session the page loads the file itself, because a link sends no token. */
import { type ComponentProps, useState } from "react";
import { messageOf } from "../format.ts";
import { hasToken, signedFetch } from "../session.ts";

interface DownloadLinkProps extends Omit<ComponentProps<"a">, "href" | "download" | "onClick"> {
  address: string;
  /** The name of the file; `""` leaves it to the server. */
  name: string;
}

export function DownloadLink({ address, name, children, ...rest }: DownloadLinkProps) {
  const [error, setError] = useState("");
  return (
    <>
      <a
        {...rest}
        href={address}
        download={name}
        onClick={(event) => {
          if (!hasToken()) return;
          event.preventDefault();
          setError("");
          download(address, name).catch((reason: unknown) => setError(messageOf(reason)));
        }}
      >
        {children}
      </a>
      {error !== "" && (
        <span role="alert" className="block text-xs text-danger">
          {error}
        </span>
      )}
    </>
  );
}

async function download(address: string, name: string): Promise<void> {
  const response = await signedFetch(address);
  if (!response.ok) throw new Error(`The server answered ${response.status}. Try again later.`);
  const url = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The browser has begun the download by then.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
