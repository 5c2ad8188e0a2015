// Rows and tables that scroll sideways say at their edges where there is more.

/** Marks what scrolls with `data-more`: `before`, `after`, or both. `look` is called when its room or its content changes. */
export function edges(look?: (node: HTMLElement) => void) {
  return (node: HTMLElement) => {
    const mark = () => {
      const [at, most] = [Math.abs(node.scrollLeft), node.scrollWidth - node.clientWidth];
      node.dataset['more'] = [at > 1 ? 'before' : '', at < most - 1 ? 'after' : ''].filter(Boolean).join(' ');
    };
    const anew = () => {
      look?.(node);
      mark();
    };
    const resized = new ResizeObserver(anew);
    resized.observe(node);
    const changed = new MutationObserver(anew);
    changed.observe(node, {
      childList: true,
      characterData: true,
      subtree: true,
      attributes: true,
      attributeFilter: ['aria-current'],
    });
    node.addEventListener('scroll', mark, { passive: true });
    return () => {
      resized.disconnect();
      changed.disconnect();
      node.removeEventListener('scroll', mark);
    };
  };
}
