"""What people need who see little, or nothing, or use no mouse: checked in the browser's own accessibility tree."""

from chromium import check

# The contrast of every text with what is behind it (WCAG 2.2, 1.4.3), and the size of everything that can be pressed.
LOOKS = """(() => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const rgba = (colour) => {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data];
    };
    const luminance = ([red, green, blue]) => [red, green, blue].map((value) => value / 255)
        .map((value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
        .reduce((sum, value, index) => sum + value * [0.2126, 0.7152, 0.0722][index], 0);
    const behind = (element) => {
        for (let node = element; node; node = node.parentElement) {
            const colour = rgba(getComputedStyle(node).backgroundColor);
            if (colour[3] === 255) return colour;
        }
        return [255, 255, 255, 255];
    };
    const found = [];
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    let count = 0;
    while (texts.nextNode()) {
        const element = texts.currentNode.parentElement;
        if (!texts.currentNode.data.trim() || !element.checkVisibility() || element.closest("script")) continue;
        const [dark, light] = [luminance(rgba(getComputedStyle(element).color)), luminance(behind(element))].sort((a, b) => a - b);
        const ratio = (light + 0.05) / (dark + 0.05);
        count += 1;
        if (ratio < 4.5) found.push(`contrast ${ratio.toFixed(2)}: ${element.outerHTML.slice(0, 120)}`);
    }
    if (!count) found.push("no text at all");
    for (const element of document.querySelectorAll("a, button")) {
        const { width, height } = element.getBoundingClientRect();
        if (Math.min(width, height) < 24) found.push(`small: ${element.outerHTML.slice(0, 120)}`);
    }
    if (document.documentElement.scrollWidth > innerWidth) found.push("wider than the window");
    if (!document.documentElement.lang) found.push("no language");
    return found;
})()"""


def check_tree(page):
    """Landmarks, one heading above all, a name for everything that can be used, a place for announcements."""
    tree = page.accessibility_tree()
    roles = [role for role, _, _ in tree]
    for role in ("main", "banner", "contentinfo", "status"):
        check(roles.count(role) == 1, f"one {role}: {roles}")
    headings = [(name, properties["level"]) for role, name, properties in tree if role == "heading"]
    check(sum(level == 1 for _, level in headings) == 1, f"one heading of level 1: {headings}")
    check(all(name for name, _ in headings), f"headings with text: {headings}")
    for role, name, properties in tree:
        if role in ("button", "link", "textbox", "image", "img", "region", "table", "RootWebArea", "rowheader"):
            check(name.strip(), f"a name for {role} {properties}")
    buttons = [name for role, name, _ in tree if role == "button"]
    check(len(set(buttons)) == len(buttons), f"buttons that can be told apart: {buttons}")
    return tree


def check_looks(page):
    """In light and dark."""
    for dark in (False, True):
        page.emulate(dark)
        found = page.evaluate(LOOKS)
        check(not found, f"no flaw in {'dark' if dark else 'light'} mode: {found}")
