#include "data/jinja/template.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/base/text/unicode.hpp"
#include "data/jinja/expressions.hpp"

namespace mylos::data::jinja {

namespace {

/// A name or a tuple of names to assign to. A name may have a member, of a namespace.
struct Target {
  std::vector<std::pair<std::string, std::string>> names = {};
  bool is_tuple = false;

  void assign(Run& run, const Value& value) const {
    const Values items = is_tuple ? items_of(value) : Values{value};
    if (items.size() != names.size()) refuse("{} values for {} names", items.size(), names.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      const auto& [name, member] = names[i];
      const Value* before = member.empty() ? nullptr : run.scope->find(name);
      Object* const space = before != nullptr && *before ? (*before)->space : nullptr;
      if (!member.empty() && space == nullptr) refuse("'{}' is no namespace", name);
      if (space != nullptr) set_member(*space, member, items[i]);
      if (space == nullptr) run.scope->variables[name] = items[i];
    }
  }
};

/// The parameters of a macro.
struct Signature {
  std::vector<std::string> names = {};
  Codes defaults = {};
};

/// Runs in a scope within another.
void run_in(Run& run, const std::shared_ptr<Scope>& parent, const std::function<void()>& action) {
  const auto before = std::exchange(run.scope, std::make_shared<Scope>(Scope{parent}));
  action();
  run.scope = before;
}

/// Returns what `action` writes in a scope of its own.
Value captured(Run& run, const std::shared_ptr<Scope>& parent, const std::function<void()>& action) {
  std::string text;
  std::string* const before = std::exchange(run.out, &text);
  run_in(run, parent, action);
  run.out = before;
  return run.counted(text);
}

Value loop_variable(const Values& items, std::size_t i) {
  const std::size_t size = items.size();
  const Json numbers = {{"index", i + 1}, {"index0", i},          {"first", i == 0},          {"last", i + 1 == size},
                        {"length", size}, {"revindex", size - i}, {"revindex0", size - i - 1}};
  Object loop = *Value(numbers);
  loop.kind = Object::object;
  if (i > 0) set_member(loop, "previtem", items[i - 1]);
  if (i + 1 < size) set_member(loop, "nextitem", items[i + 1]);
  return loop;
}

class Parser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;
  bool has_generation = false;
  Code read() { return read_body({}); }

 private:
  /// Reads statements up to a tag of one of these names, which `ended_by_` then is, and whose end is next.
  Code read_body(Names ends) {
    enter();
    const std::size_t first_line = line;
    Codes parts;
    while (true) {
      if (const std::string text = read_text(); !text.empty()) parts.push_back(write(constant(text)));
      if (at_ == source_.size()) {
        if (ends.size() == 0) break;
        line = first_line;
        refuse("the block has no '{}'", *(ends.end() - 1));
      }
      const bool is_output = peek(1) == '{';
      advance(peek(2) == '-' || peek(2) == '+' ? 3 : 2);
      if (!is_output) ended_by_ = read_name();
      if (!is_output && is_one_of(ended_by_, ends)) break;
      parts.push_back(is_output ? write(read_tuple()) : read_statement(ended_by_));
      end_tag(is_output ? "}}" : "%}");
    }
    --level_;
    return make([parts](Run& run) {
      for (std::size_t i = 0; i < parts.size() && run.leaving == Run::nothing; ++i) parts[i](run);
    });
  }
  Code write(const Code& value) const {
    return make([value](Run& run) { run.write(value(run)); });
  }
  Code read_block(Names ends) {
    end_tag("%}");
    return read_body(ends);
  }

  Code read_statement(const std::string& name) {
    if (name == "if") return read_if();
    if (name == "for") return read_for();
    if (name == "set") return read_set();
    if (name == "macro") return read_macro();
    if (name == "call") return read_call();
    if (name == "generation") return read_generation();
    if (!is_one_of(name, {"break", "continue"})) refuse("the tag '{}' is not supported", name);
    if (loops_ == 0) refuse("'{}' is in no loop", name);
    return make([is_break = name == "break"](Run& run) { run.leaving = is_break ? Run::loop : Run::turn; });
  }

  Code read_if() {
    std::vector<std::pair<Code, Code>> branches;
    do {
      const bool is_else = ended_by_ == "else";
      const Code condition = is_else ? constant(true) : read_expression();
      branches.emplace_back(condition, is_else ? read_block({"endif"}) : read_block({"elif", "else", "endif"}));
    } while (ended_by_ != "endif");
    return make([branches](Run& run) {
      for (const auto& [condition, body] : branches) {
        if (is_true(condition(run))) return body(run);
      }
      return Value();
    });
  }

  Code read_for() {
    const Target target = read_target();
    expect("in");
    const Code list = read_binary(1), condition = accept("if") ? read_expression() : constant(true);
    ++loops_;
    const Code body = read_block({"else", "endfor"});
    --loops_;
    const Code otherwise = ended_by_ == "else" ? read_block({"endfor"}) : Code();
    return make([=](Run& run) {
      Values items = items_of(list(run));
      std::erase_if(items, [&](const Value& item) {
        bool is_kept = false;
        run_in(run, run.scope, [&] {
          target.assign(run, item);
          is_kept = is_true(condition(run));
        });
        return !is_kept;
      });
      for (std::size_t i = 0; i < items.size() && run.leaving != Run::loop; ++i) {
        run.leaving = Run::nothing;
        run.spend(1024);  // for the scope
        run_in(run, run.scope, [&] {
          run.scope->variables["loop"] = loop_variable(items, i);
          target.assign(run, items[i]);
          body(run);
        });
      }
      run.leaving = Run::nothing;
      if (items.empty()) otherwise(run);
    });
  }

  Target read_target() {
    Target target;
    const bool is_enclosed = accept("(");
    do {
      if (!target.names.empty() && (is_next("in") || is_next("="))) break;
      target.names.emplace_back(read_name(), "");
      if (accept(".")) target.names.back().second = read_name();
      target.is_tuple = is_enclosed || target.names.size() > 1 || is_next(",");
    } while (accept(","));
    if (is_enclosed) expect(")");
    return target;
  }

  Code read_set() {
    const Target target = read_target();
    const bool is_block = !accept("=");
    const Code value = is_block ? read_block({"endset"}) : read_tuple();
    return make(
        [=](Run& run) { target.assign(run, is_block ? captured(run, run.scope, [&] { value(run); }) : value(run)); });
  }

  Code read_macro() {
    const std::string name = read_name();
    const Code macro = read_function(read_signature(), "endmacro");
    return make([=](Run& run) { run.scope->variables[name] = macro(run); });
  }

  Code read_call() {
    const Signature signature = is_next("(") ? read_signature() : Signature();
    const std::string name = read_name();
    CallCode call = read_arguments({variable(name), name});
    call.given.push_back({"caller", read_function(signature, "endcall")});
    return write(make(call));
  }

  Signature read_signature() {
    Signature signature;
    expect("(");
    while (has_item(signature.defaults.empty(), ")")) {
      signature.names.push_back(read_name());
      signature.defaults.push_back(accept("=") ? read_expression() : Code());
    }
    return signature;
  }

  /// Reads the body of a macro and makes code whose value it is.
  Code read_function(Signature signature, std::string_view end) {
    const std::size_t loops = std::exchange(loops_, 0);
    const bool uses_caller = std::exchange(uses_caller_, false);
    const Code body = read_block({end});
    if (uses_caller_) signature.names.push_back("caller");
    signature.defaults.resize(signature.names.size());
    uses_caller_ |= uses_caller;
    loops_ = loops;
    return make([=](Run& run) {
      const auto function = [=, parent = std::weak_ptr(run.scope)](Run& inner, const Arguments& arguments) {
        const Values values = arguments.bind(signature.names);
        const auto scope = parent.lock();
        if (!scope) refuse("a macro is called after the end of the block that defines it");
        return captured(inner, scope, [&] {
          for (std::size_t i = 0; i < values.size(); ++i) {
            inner.scope->variables[signature.names[i]] = values[i] ? values[i] : signature.defaults[i](inner);
          }
          body(inner);
        });
      };
      return Value(Object{.kind = Object::function, .call = function});
    });
  }

  Code read_generation() {
    has_generation = true;
    const Code body = read_block({"endgeneration"});
    return make([=](Run& run) {
      if (run.out != &run.text) refuse("'generation' in a macro or a 'set' block is not supported");
      const std::size_t begin = run.text.size();
      run_in(run, run.scope, [&] { body(run); });
      run.generated.emplace_back(begin, run.text.size());
    });
  }

  std::string ended_by_;
  std::size_t loops_ = 0;
};

}  // namespace

Template::Template(std::string_view source, std::string name) : name_(std::move(name)) {
  ensure_utf8(source, name_);
  Parser parser(source);
  try {
    code_ = std::make_shared<const Code>(parser.read());
  } catch (const TemplateError& error) {
    fail(fmt::format("{}, line {}: {}", name_, parser.line, error.what()));
  }
  has_generation_ = parser.has_generation;
}

Template::Rendering Template::render(const std::vector<std::pair<std::string, Value>>& variables,
                                     const std::tm& now) const {
  Run run{.now = now};
  for (const auto& [name, value] : variables) run.scope->variables[name] = value;
  try {
    (*code_)(run);
  } catch (const TemplateError& error) {
    fail(fmt::format("{}, line {}: {}", name_, run.line, error.what()));
  }
  return {std::move(run.text), std::move(run.generated)};
}

}  // namespace mylos::data::jinja
