/**
 * Text of a model as Markdown. It is not trusted: HTML in it is shown as text, links open without a reference to this
 * page, and images become links, because loading one tells a stranger that this conversation is being read.
 */
import { memo, type ReactNode } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";

const plugins = [remarkGfm];

const components: Components = {
  a: ({ href, children }) => <OutsideLink href={href}>{children}</OutsideLink>,
  img: ({ src, alt }) => (
    <OutsideLink href={typeof src === "string" ? src : undefined}>{alt || "Image"}</OutsideLink>
  ),
};

/** An address that was not safe has been taken out before; its text stays. */
function OutsideLink({ href, children }: { href: string | undefined; children: ReactNode }) {
  if (href === undefined || href === "") return children;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  );
}

export const Markdown = memo(function Markdown({ text }: { text: string }) {
  return (
    <div className="markdown">
      <ReactMarkdown remarkPlugins={plugins} components={components}>
        {text}
      </ReactMarkdown>
    </div>
  );
});
