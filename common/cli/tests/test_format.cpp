#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>

#include "common/cli/format.h"
#include "common/cli/text_table.h"
#include "common/testing/catch.h"

namespace {

using namespace fa2::cli;

struct Case {
  double value;
  const char* text;
};

TEST_CASE("number: three significant digits, no exponent") {
  for (const auto& [value, text] :
       {Case{0, "0"}, Case{0.0125, "0.0125"}, Case{1.25, "1.25"}, Case{12.54, "12.5"},
        Case{125.4, "125"}, Case{12540, "12540"}, Case{-1.5, "-1.50"}, Case{1, "1.00"},
        Case{std::numeric_limits<double>::infinity(), "inf"},
        Case{std::numeric_limits<double>::quiet_NaN(), "nan"}}) {
    CHECK(number(value) == text);
  }
}

TEST_CASE("count: exact up to six digits, then four digits and a suffix") {
  CHECK(count(0) == "0");
  CHECK(count(131072) == "131072");
  CHECK(count(999999) == "999999");
  CHECK(count(1000000) == "1.000M");
  CHECK(count(2097152) == "2.097M");
  CHECK(count(123456789) == "123.5M");
  CHECK(count(4294967296) == "4.295G");
  CHECK(count(std::numeric_limits<uint64_t>::max()) == "18.45E");
}

TEST_CASE("bytes") {
  CHECK(kib(58368) == "57.0");
  CHECK(mib(1 << 20) == "1.00");
  CHECK(mib(0) == "0");
}

TEST_CASE("factor: how a counter moved") {
  CHECK(factor(2, 8, Charset::ascii) == "x4");
  CHECK(factor(8, 2, Charset::ascii) == "/4");
  CHECK(factor(2, 8, Charset::utf8) == "×4");
  CHECK(factor(8, 2, Charset::utf8) == "÷4");
  CHECK(factor(2, 3, Charset::ascii) == "x1.5");
  CHECK(factor(3, 0, Charset::ascii) == "gone");
  CHECK(factor(0, 3, Charset::ascii) == "new");
  CHECK(factor(3, 3, Charset::ascii) == "same");
  CHECK(factor(10000, 10004, Charset::ascii) == "+0.0400%");
  CHECK(factor(10000, 9996, Charset::ascii)[0] == '-');
}

TEST_CASE("wrap: words stay whole, lines stay short, later lines are indented") {
  CHECK(wrap("one two three", 7) == "one two\nthree");
  CHECK(wrap("one two three", 8, 2) == "one two\n  three");
  CHECK(wrap("a first line\nand a second", 80, 2) == "a first line\n  and a second");
  CHECK(wrap("", 10).empty());
  CHECK(wrap("unbreakable", 4) == "unbreakable");
}

TEST_CASE("display width counts characters, not bytes") {
  CHECK(display_width("abc") == 3);
  CHECK(display_width("×4 → ÷2") == 7);
}

TEST_CASE("charset: LC_ALL before LC_CTYPE before LANG") {
  unsetenv("LC_ALL");
  unsetenv("LC_CTYPE");
  setenv("LANG", "C", 1);
  CHECK(charset_of_environment() == Charset::ascii);
  setenv("LANG", "de_DE.UTF-8", 1);
  CHECK(charset_of_environment() == Charset::utf8);
  setenv("LC_ALL", "C", 1);
  CHECK(charset_of_environment() == Charset::ascii);
  setenv("LC_ALL", "C.utf8", 1);
  CHECK(charset_of_environment() == Charset::utf8);
}

TEST_CASE("fields of CSV and Markdown cannot break their table") {
  CHECK(csv_field("plain") == "plain");
  CHECK(csv_field("a,b") == "\"a,b\"");
  CHECK(csv_field("say \"no\"\n") == "\"say \"\"no\"\"\n\"");
  CHECK(markdown_cell("a|b\nc") == "a\\|b c");
}

Table wide_table() {
  Table t;
  t.heads = {"stage", "block\nbarriers", "mma", "shuffles"};
  t.rows = {{"2 fa1", "12", "131072", "–"}, {"6 deferred lazy", "3", "131072", "8"}};
  return t;
}

TEST_CASE("a table that fits is one table") {
  CHECK(wide_table().text(80) ==
        "                    block\n"
        "stage            barriers     mma  shuffles\n"
        "---------------  --------  ------  --------\n"
        "2 fa1                  12  131072         –\n"
        "6 deferred lazy         3  131072         8\n");
}

TEST_CASE("a table that does not fit continues below, with its first column") {
  const std::string text = wide_table().text(34);
  CHECK(text ==
        "                    block\n"
        "stage            barriers     mma\n"
        "---------------  --------  ------\n"
        "2 fa1                  12  131072\n"
        "6 deferred lazy         3  131072\n"
        "\n"
        "stage            shuffles\n"
        "---------------  --------\n"
        "2 fa1                   –\n"
        "6 deferred lazy         8\n");
}

TEST_CASE("a table in Markdown") {
  Table table = wide_table();
  table.heads[2] = "m-\nma";
  CHECK(table.markdown() ==
        "| stage | block barriers | mma | shuffles |\n"
        "|---|---:|---:|---:|\n"
        "| 2 fa1 | 12 | 131072 | – |\n"
        "| 6 deferred lazy | 3 | 131072 | 8 |\n");
}

}  // namespace
