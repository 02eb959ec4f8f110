# Apply a rule of isocost in R: the same people get the same scores as in Python, Spark and SQL.
#
#   source("isocost.R")
#   rule <- isocost_read("rule.json")
#   people <- isocost_repair(rule, people, id = "id")    # adds repaired_score
#
# Needs base R, and the package digest if the rule throws a coin.

# Read a rule that isocost wrote; `file` is a path.
isocost_read <- function(file) {
  if (!file.exists(file)) isocost_stop("file", "must exist", file, "check the path")
  bytes <- readBin(file, "raw", file.size(file))
  text <- rawToChar(bytes)
  Encoding(text) <- "UTF-8"
  if (!validUTF8(text)) {
    isocost_stop("rule file", "must be UTF-8", file, "use the file as isocost wrote it")
  }
  isocost_check(isocost_json(text))
}

# A data frame with a column of repaired scores, whose other columns stay as they are.
#   rule     what isocost_read returned
#   data     a data frame
#   score, group, id  names of columns; by default those the rule was made from, then "score" and
#            "group"; group may name several, and a rule with a coin needs an id
#   output   the column to write, which replaces one of this name; by default "repaired_" and the
#            name of the score column, which must then be a new column
#   ...      unknown and missing_group of isocost_apply
isocost_repair <- function(rule, data, score = NULL, group = NULL, id = NULL, output = NULL, ...) {
  if (!is.data.frame(data)) {
    isocost_stop("data", "must be a data frame", class(data)[1], "pass vectors to isocost_apply")
  }
  stored <- rule[["made_from"]][["columns"]]
  first <- function(...) Find(Negate(is.null), list(...))
  score <- first(score, stored[["score"]], "score")
  group <- first(group, unlist(stored[["group"]]), "group")
  id <- first(id, stored[["id"]])
  for (role in c("score", "group", "id")) {
    missing <- setdiff(get(role), names(data))
    if (length(missing)) {
      isocost_stop(role, "must name a column of the data", missing[1],
                   paste("name one of", paste(names(data), collapse = ", ")))
    }
  }
  usual <- paste0("repaired_", score)
  if (is.null(output) && usual %in% names(data)) {
    isocost_stop("output", "must be named, because a column with the usual name exists",
                 paste("a column", usual, "in the data"),
                 sprintf('pass output = "%s" to replace that column, or another name', usual))
  }
  groups <- if (length(group) == 1) data[[group]] else lapply(group, function(name) data[[name]])
  ids <- if (is.null(id)) NULL else data[[id]]
  data[[first(output, usual)]] <- isocost_apply(rule, data[[score]], groups, ids, ...)
  data
}

# The scores after a rule; NA for people whom the rule hands over to somebody else.
#   rule     what isocost_read returned
#   score    numbers in [0, 1]
#   group    texts, factors, numbers or logicals; a data frame or list of several columns for
#            groups that are intersections, in the order the rule was made with
#   id       whole numbers or texts, which decide the coin; not needed by a rule without one
#   unknown  "error", or "keep" to leave the scores of groups that the rule does not know
#   missing_group  the group of rows whose group is NA; without it they are an error
isocost_apply <- function(rule, score, group, id = NULL, unknown = c("error", "keep"),
                          missing_group = NULL) {
  unknown <- match.arg(unknown)
  if (!is.numeric(score) || anyNA(score) || any(score < 0 | score > 1)) {
    got <- if (is.numeric(score)) {
      paste(sum(is.na(score) | score < 0 | score > 1), "values that are not")
    } else {
      class(score)[1]
    }
    isocost_stop("score", "must be numbers in [0, 1]", got, "correct or drop those rows")
  }
  keys <- isocost_keys(group, missing_group)
  isocost_check_length("group", keys, score)
  known <- vapply(rule$groups, isocost_key, "")
  strange <- unique(keys[!keys %in% known])
  if (length(strange) && unknown == "error") {
    isocost_stop("group", paste("must be one the rule knows:", isocost_shown(known)),
                 isocost_shown(strange),
                 'use data with these groups (1 is not "1"), or unknown = "keep"')
  }
  of_row <- vapply(rule$rows, function(row) isocost_key(row$group), "")
  chances <- vapply(rule$rows, function(row) row$probability, 0)
  coins <- NULL
  if (any(chances > 0 & chances < 1)) coins <- isocost_coins(id, rule$coin$salt, length(score))
  result <- as.double(score)
  for (key in unique(of_row)) {
    mine <- which(keys == key)
    rows <- rule$rows[of_row == key]
    intervals <- vapply(rows, function(row) sprintf("%.17g,%.17g", row$lo, row$hi), "")
    for (interval in unique(intervals)) {
      same <- rows[intervals == interval]
      inside <- score[mine] >= same[[1]]$lo & (score[mine] < same[[1]]$hi | same[[1]]$hi == 1)
      people <- mine[inside]
      result[people] <- isocost_outcome(same, score[people], coins[people])
    }
  }
  result
}

# The coins of ids: whole numbers below 2^52, which are exact as doubles.
#   The first 13 hexadecimal digits of md5(salt + ":" + id).
isocost_coins <- function(id, salt, rows = length(id)) {
  if (is.null(id)) {
    isocost_stop("id", "is needed by a rule with a coin", "no id",
                 "pass the column that identifies the person")
  }
  if (!requireNamespace("digest", quietly = TRUE)) {
    isocost_stop("digest", "is needed by a rule with a coin", "no package digest",
                 'install.packages("digest")')
  }
  texts <- isocost_id(id)
  if (length(texts) != rows) {
    isocost_stop("id", paste("must have", rows, "values, as many as score"), length(texts),
                 "pass columns of the same data")
  }
  messages <- enc2utf8(paste0(salt, rep(":", length(texts)), texts))
  hex <- vapply(messages, digest::digest, "", algo = "md5", serialize = FALSE, USE.NAMES = FALSE)
  # Not compared as texts: how R orders those depends on the locale.
  strtoi(substr(hex, 1, 6), 16L) * 2^28 + strtoi(substr(hex, 7, 13), 16L)
}

# --- what follows is internal -------------------------------------------------------------------

isocost_stop <- function(name, rule, got, step) {
  stop(name, ": ", rule, "\n  got:  ", got, "\n  next: ", step, call. = FALSE)
}

isocost_shown <- function(keys) paste(sub("^[a-z]:", "", keys), collapse = "; ")

isocost_check_length <- function(name, values, score) {
  if (length(values) != length(score)) {
    isocost_stop(name, paste("must have", length(score), "values, as many as score"),
                 length(values), "pass columns of the same data")
  }
}

# What becomes of scores in one interval, whose rows share a coin.
isocost_outcome <- function(rows, score, coins) {
  result <- score
  # Before a coin below its bound decides, the earlier rows had their chance.
  bounds <- isocost_bounds(vapply(rows, function(row) row$probability, 0))
  low <- c(0, bounds)[seq_along(rows)]
  for (i in seq_along(rows)) {
    if (bounds[i] <= low[i]) next
    chosen <- if (is.null(coins)) rep(TRUE, length(score)) else coins >= low[i] & coins < bounds[i]
    result[chosen] <- isocost_new(rows[[i]], score[chosen])
  }
  result
}

isocost_new <- function(row, score) {
  switch(row$action,
    set = rep(row$value, length(score)),
    mirror = 1 - score,
    defer = rep(NA_real_, length(score)),
    line = {
      slope <- (row$end - row$value) / (row$hi - row$lo)
      pmin(pmax(row$value + slope * (score - row$lo), 0), 1)
    }
  )
}

# A coin below bound i, and not below an earlier one, chooses row i.
isocost_bounds <- function(probabilities) {
  sums <- vapply(seq_along(probabilities), function(i) isocost_sum(probabilities[1:i]), 0)
  ceiling(pmin(sums, 1) * 2^52)
}

# A sum that is rounded once, by Shewchuk's partial sums.
isocost_sum <- function(values) {
  partials <- numeric()
  for (x in values) {
    rest <- numeric()
    for (y in partials) {
      if (abs(x) < abs(y)) { z <- x; x <- y; y <- z }
      high <- x + y
      low <- y - (high - x)
      if (low != 0) rest <- c(rest, low)
      x <- high
    }
    partials <- c(rest, x)
  }
  total <- 0
  for (x in partials) total <- total + x
  total
}

# Ids as they are written for the coin: whole numbers in decimal, texts as they are.
isocost_id <- function(id) {
  if (is.factor(id)) id <- as.character(id)
  step <- "use whole numbers or texts as ids, for example as.character(id)"
  must <- "must be a whole number or a text in every row"
  if (anyNA(id)) isocost_stop("id", must, paste(sum(is.na(id)), "missing values"), step)
  if (inherits(id, "integer64")) {
    if (!requireNamespace("bit64", quietly = TRUE)) {
      isocost_stop("id", "of class integer64 needs the package bit64", "no package bit64",
                   'install.packages("bit64")')
    }
    return(bit64::as.character.integer64(id))
  }
  if (is.character(id)) return(id)
  if (is.integer(id)) return(sprintf("%d", id))
  # R reads whole numbers above 2^31 as doubles; beyond 2^53 they are not exact.
  if (is.double(id) && is.null(attr(id, "class")) && all(id == floor(id) & abs(id) < 2^53)) {
    return(sprintf("%.0f", id + 0))
  }
  got <- if (is.double(id)) "numbers that are not whole, or above 2^53" else class(id)[1]
  isocost_stop("id", must, got, step)
}

# A group as one text that keeps types apart: 1 is not "1".
isocost_key <- function(group) {
  paste(vapply(group, function(part) isocost_part(part), ""), collapse = "\u001f")
}

isocost_part <- function(values) {
  if (is.factor(values)) values <- as.character(values)
  if (is.character(values)) return(paste0(rep("t:", length(values)), enc2utf8(values)))
  if (is.logical(values)) return(paste0("b:", values))
  if (is.numeric(values) && is.null(attr(values, "class"))) {
    return(paste0("n:", sprintf("%.17g", as.double(values))))
  }
  isocost_stop("group", "must be texts, numbers or logicals", class(values)[1],
               "convert the column with as.character")
}

isocost_keys <- function(group, missing_group) {
  columns <- if (is.list(group)) unname(as.list(group)) else list(group)
  if (!length(columns)) isocost_stop("group", "must be a column", "none", "pass the groups")
  sizes <- lengths(columns)
  if (any(sizes != sizes[1])) {
    isocost_stop("group", "must have columns of one length", paste(sizes, collapse = ", "),
                 "pass columns of the same data")
  }
  parts <- lapply(columns, function(values) {
    # Logical NA alone is a column without any group.
    key <- isocost_part(values)
    if (anyNA(values)) {
      if (is.null(missing_group)) {
        isocost_stop("group", "must be given in every row",
                     paste(sum(is.na(values)), "missing values"),
                     "drop those rows, or pass missing_group")
      }
      key[is.na(values)] <- isocost_part(missing_group)
    }
    key
  })
  if (sizes[1] == 0) character() else do.call(paste, c(parts, sep = "\u001f"))
}

# Raise unless a rule is one that this file can apply.
isocost_check <- function(rule) {
  again <- "make the rule again with isocost, and do not edit it"
  if (!is.list(rule) || !identical(rule$format, "isocost-rule")) {
    isocost_stop("rule file", 'must say "format": "isocost-rule"', "another file", again)
  }
  if (!identical(rule$version, 1)) {
    isocost_stop("rule version", "must be 1, the version this file reads", format(rule$version),
                 "get the isocost.R of your version of isocost")
  }
  if (!identical(rule$coin$scheme, "md5-52")) {
    isocost_stop("rule coin", 'must have the scheme "md5-52"', format(rule$coin$scheme), again)
  }
  known <- vapply(rule$groups, isocost_key, "")
  chances <- list()
  for (row in rule$rows) {
    is_unit <- function(x) is.numeric(x) && length(x) == 1 && !is.na(x) && x >= 0 && x <= 1
    if (!isocost_key(row$group) %in% known) {
      isocost_stop("rule row", "must be of a group the rule names",
                   isocost_shown(isocost_key(row$group)), again)
    }
    if (!(is_unit(row$lo) && is_unit(row$hi) && row$lo < row$hi)) {
      isocost_stop("rule interval", "must have 0 <= lo < hi <= 1",
                   paste(format(row$lo), format(row$hi)), again)
    }
    needed <- list(set = "value", mirror = character(), line = c("value", "end"),
                   defer = character())
    if (!is.character(row$action) || !row$action %in% names(needed)) {
      isocost_stop("rule action", 'must be "set", "mirror", "line" or "defer"',
                   format(row$action), again)
    }
    for (name in c("probability", needed[[row$action]])) {
      if (!is_unit(row[[name]])) {
        isocost_stop(paste("rule", name), "must be a number in [0, 1]", format(row[[name]]), again)
      }
    }
    interval <- paste(isocost_key(row$group), sprintf("%.17g %.17g", row$lo, row$hi))
    chances[[interval]] <- c(chances[[interval]], row$probability)
    if (isocost_sum(chances[[interval]]) > 1 + 1e-9) {
      isocost_stop("rule probability", "must add up to at most 1 over the rows of an interval",
                   format(sum(chances[[interval]])), again)
    }
  }
  rule
}

# JSON to lists: objects have names, null is NULL in an object and NA in an array.
isocost_json <- function(text) {
  token <- paste0('"(?:[^"\\\\\\x00-\\x1f]|\\\\.)*"|-?\\d+(?:\\.\\d+)?(?:[eE][-+]?\\d+)?|',
                  "true|false|null|[][{}:,]")
  # By bytes, because finding a character of a long text in UTF-8 takes R as long as reading it.
  found <- gregexpr(token, text, perl = TRUE, useBytes = TRUE)
  start <- c(found[[1]])
  size <- attr(found[[1]], "match.length")
  bytes <- charToRaw(text)
  tokens <- character()
  if (start[1] > 0) {
    tokens <- mapply(function(from, to) rawToChar(bytes[from:to]), start, start + size - 1)
    Encoding(tokens) <- "UTF-8"
    bytes[unlist(mapply(seq, start, start + size - 1, SIMPLIFY = FALSE))] <- as.raw(32)
  }
  between <- rawToChar(bytes)
  at <- 0
  bad <- function(got) {
    isocost_stop("rule file", "must be JSON text as isocost writes it", got,
                 "make the rule again with isocost, and do not edit it")
  }
  if (grepl("[^ \t\r\n]", between, useBytes = TRUE)) bad("text outside of quotes")
  pull <- function() {
    at <<- at + 1
    if (at > length(tokens)) bad("an early end")
    tokens[at]
  }
  value <- function(first = pull()) {
    switch(substr(first, 1, 1),
      "{" = object(),
      "[" = array(),
      '"' = isocost_unescape(first),
      "t" = TRUE,
      "f" = FALSE,
      "n" = NULL,
      "]" = , "}" = , ":" = , "," = bad(first),
      # Right but for the last of 53 bits of one number in ten thousand.
      as.numeric(first)
    )
  }
  object <- function() {
    content <- list()
    first <- pull()
    while (first != "}") {
      if (substr(first, 1, 1) != '"') bad(first)
      name <- isocost_unescape(first)
      if (name %in% names(content)) bad(paste("a name that occurs twice:", name))
      if (pull() != ":") bad(name)
      # Assigning NULL with [[ would drop the name.
      content[name] <- list(value())
      after <- pull()
      if (after == "}") break
      if (after != ",") bad(after)
      first <- pull()
      if (first == "}") bad(first)
    }
    content
  }
  array <- function() {
    content <- list()
    first <- pull()
    while (first != "]") {
      one <- value(first)
      content[length(content) + 1] <- list(if (is.null(one)) NA else one)
      after <- pull()
      if (after == "]") break
      if (after != ",") bad(after)
      first <- pull()
      if (first == "]") bad(first)
    }
    content
  }
  whole <- value()
  if (at < length(tokens)) bad("more than one value")
  whole
}

isocost_unescape <- function(quoted) {
  text <- substr(quoted, 2, nchar(quoted) - 1)
  if (!grepl("\\", text, fixed = TRUE)) return(text)
  found <- gregexpr("\\\\(?:u[dD][89abAB]..\\\\u....|u....|.)", text, perl = TRUE)
  plain <- c(b = "\b", f = "\f", n = "\n", r = "\r", t = "\t", "/" = "/", "\\" = "\\", '"' = '"')
  regmatches(text, found) <- lapply(regmatches(text, found), function(escapes) {
    vapply(escapes, function(escape) {
      if (substr(escape, 2, 2) != "u") return(unname(plain[substr(escape, 2, 2)]))
      codes <- strtoi(c(substr(escape, 3, 6), substr(escape, 9, 12)), 16L)
      if (nchar(escape) == 6) return(intToUtf8(codes[1]))
      intToUtf8(0x10000 + (codes[1] - 0xd800) * 0x400 + (codes[2] - 0xdc00))
    }, "", USE.NAMES = FALSE)
  })
  if (anyNA(text)) {
    isocost_stop("rule file", "must be JSON text as isocost writes it", quoted,
                 "make the rule again with isocost, and do not edit it")
  }
  enc2utf8(text)
}
