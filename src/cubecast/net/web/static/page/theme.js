/** Light, dark, or as the system says; remembered by this browser. */

const KEY = "cubecast-theme";
const NEXT = { auto: "light", light: "dark", dark: "auto" };

/** @param {HTMLElement} button */
export function themeButton(button) {
  const show = (theme) => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.textContent = `Theme: ${theme}`;
  };
  let theme = localStorage.getItem(KEY) ?? "auto";
  if (!(theme in NEXT)) theme = "auto";
  button.addEventListener("click", () => {
    theme = NEXT[theme];
    localStorage.setItem(KEY, theme);
    show(theme);
  });
  show(theme);
}
