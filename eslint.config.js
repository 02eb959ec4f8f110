import js from "@eslint/js";

const known = Object.fromEntries(
  ["FormData", "URLSearchParams", "XMLHttpRequest", "console", "document", "navigator", "process", "window"].map((name) => [name, "readonly"]),
);

export default [
  js.configs.recommended,
  {
    languageOptions: { ecmaVersion: 2022, sourceType: "module", globals: known },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      eqeqeq: "error",
      "func-style": ["error", "declaration", { allowArrowFunctions: true }],
      "max-lines": ["error", 350],
      "max-lines-per-function": ["error", { max: 45, skipComments: true }],
      "no-shadow": "error",
      "no-var": "error",
      "prefer-const": "error",
    },
  },
  { files: ["tests/**"], rules: { "max-lines-per-function": "off" } },
];
