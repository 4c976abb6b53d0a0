#include "data/tokenizer/json/normal_forms.hpp"

#include <algorithm>
#include <utility>

#include "data/tokenizer/bert_unicode.hpp"

namespace mylos::data {
namespace {

/// The smallest character that is not the same in NFC, and in other forms. Below, all combining classes are 0.
constexpr char32_t first_mark = 0x300;
constexpr char32_t first_changed = 0xA0;

/// A character of a normal form. `taken` characters of the text end with it: 0 if it is added to those before.
struct FormCharacter {
  char32_t c;
  int combining_class;
  int taken;
};
using FormCharacters = std::vector<FormCharacter>;

bool is_unchanged(std::string_view text, NormalForm form) {
  const char32_t first = form == NormalForm::nfc ? first_mark : first_changed;
  for (std::size_t position = 0; position < text.size();) {
    if (decode_code_point(text, position) >= first) return false;
  }
  return true;
}

FormCharacters decomposed_text(std::string_view text, bool compatible) {
  FormCharacters characters;
  characters.reserve(text.size());
  char32_t parts[max_decomposition];
  for (std::size_t position = 0; position < text.size();) {
    const std::size_t count = decompose(decode_code_point(text, position), parts, compatible);
    for (std::size_t i = 0; i < count; ++i) {
      characters.push_back({parts[i], combining_class(parts[i]), i == 0 ? 1 : 0});
    }
  }
  return characters;
}

/// Sorts each run of marks by combining class. Each keeps how many characters it takes, as in `tokenizers`.
void sort_marks(FormCharacters& characters) {
  const auto is_mark = [](const FormCharacter& c) { return c.combining_class != 0; };
  for (auto first = characters.begin(); first != characters.end();) {
    first = std::find_if(first, characters.end(), is_mark);
    const auto last = std::find_if_not(first, characters.end(), is_mark);
    std::stable_sort(first, last, [](const FormCharacter& a, const FormCharacter& b) {
      return a.combining_class < b.combining_class;
    });
    first = last;
  }
}

/// Composes each starter with the marks after it that are not blocked by others, in place.
void compose_text(FormCharacters& characters) {
  std::size_t size = 0;
  std::size_t starter = characters.size();  // none yet
  int last_class = -1;                      // of what stands between the starter and the next character; -1: nothing
  for (const FormCharacter& next : characters) {
    const bool is_free = starter < size && last_class < next.combining_class;
    const char32_t composed = is_free ? compose(characters[starter].c, next.c) : 0;
    if (composed != 0) {
      characters[starter].c = composed;
      characters[starter].taken += next.taken;
      continue;
    }
    if (next.combining_class == 0) starter = size;
    last_class = next.combining_class == 0 ? -1 : next.combining_class;
    characters[size++] = next;
  }
  characters.resize(size);
}

}  // namespace

void normalize(AlignedText& text, NormalForm form) {
  if (is_unchanged(text.text, form)) return;
  FormCharacters characters = decomposed_text(text.text, form == NormalForm::nfkc || form == NormalForm::nfkd);
  sort_marks(characters);
  if (form == NormalForm::nfc || form == NormalForm::nfkc) compose_text(characters);
  AlignedText changed;
  Rewriter rewriter(text.text, text.origins, changed);
  for (const FormCharacter& character : characters) {
    if (character.taken == 0) {
      rewriter.insert(character.c);
      continue;
    }
    rewriter.replace(character.c);
    for (int i = 1; i < character.taken; ++i) rewriter.skip();
  }
  text = std::move(changed);
}

}  // namespace mylos::data
