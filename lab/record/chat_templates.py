#!/usr/bin/env python3
"""Records what transformers renders of templates -> tests/golden/chat_templates.jsonl.

Each line has a template, its variables, and the text with the generated spans, or the error. The templates use the constructs of
published ones: those of Llama 3.1, Qwen 2.5 and 3, Mistral, Gemma, Phi, DeepSeek, SmolLM, Zephyr and gpt-oss.

Needs PyPI's jinja2 3.1.6 and transformers 4.57.6.
"""

import datetime

from common import write_lines
from transformers.utils.chat_template_utils import _compile_jinja_template, _render_with_assistant_indices

NOW = datetime.datetime(2026, 7, 4, 9, 5)

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Tells the weather, \"now\" & later.",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "Čeština <b>'x'</b>"},
                    "days": {"type": "integer", "default": 3, "limits": [1, 2.5, 1e20, None, True]},
                },
                "required": ["city"],
            },
        },
    }
]
CALL = {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": {"name": "get_weather", "arguments": {"city": "Brno", "days": 2}}}]}
CHAT = [
    {"role": "system", "content": " Be brief.\n"},
    {"role": "user", "content": "How is the weather in Brno?"},
    CALL,
    {"role": "tool", "content": "12 °C"},
    {"role": "tool", "content": "rain"},
    {"role": "assistant", "content": "<think>\nIt rains.\n</think>\n\nIt rains at 12 °C. "},
    {"role": "user", "content": "Thanks 🙂 <b>"},
    {"role": "assistant", "content": "You're \"welcome\"."},
]
SHORT = [CHAT[1], CHAT[5], CHAT[6], CHAT[7]]
VARIABLES = {"messages": CHAT, "tools": TOOLS, "add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>", "documents": None}
PLAIN = {**VARIABLES, "messages": SHORT, "tools": None, "add_generation_prompt": False}

# Expressions; each is recorded as {{ (expression) }} over these variables.
VALUES = {"s": "Grüße, 'you' \"two\"\n", "n": 7, "f": 2.5, "e": [], "l": [3, "b", 1.0, None, True, "B"], "d": {"b": 1, "a": [1, {"x": "ž"}], "items": 3},
          "people": [{"name": "Ann", "age": 3, "x": {"y": 1}}, {"name": "bob", "age": 2}, {"name": "Cid", "age": 3}], "none_value": None, "words": "  a b\t c \n"}
EXPRESSIONS = r"""
1 + 2 * 3 - 4 // 3 | 7 / 2 ~ 1.0 ~ 1e20 ~ 1.5e-7 ~ 100000.0
-n|abs ~ -3|string | (-n)|abs + 1 | 'a' ~ 1 ~ none ~ true ~ missing ~ 2.50 | 'ab' * 3 ~ '' * 2 | [1, 'x'] + [2]
s[1:4] ~ s[-3:] ~ s[::-1] ~ s[::2] ~ s[5:1:-2] ~ s[100:] ~ s[:-100] | l[1:] ~ l[::-1] ~ l[-1] ~ l[99] ~ l[:2] ~ s[2] ~ s[-1]
n == 7.0 and true == 1 and not false | 'b' in l and 'z' not in s and 'a' in d and none in l | 'a' < 'b'
l == [3, 'b', 1, none, true, 'B'] | {'a': 1, 'b': 2} == {'b': 2, 'a': 1} | missing == none | missing == other
0 or '' or 'x' | 1 and [] | not [] | not missing | 'y' if n > 3 else 'z' | 'y' if n > 9 | ('y' if 0 else 'z' if 0 else 'w')
d.a ~ d['b'] ~ d.missing ~ d['items'] ~ d.get('zz') ~ d.get('zz', 5) ~ d.get('b') | d.keys()|list | d.values()|list
d['items'] | d.a[1].x | d.a[0] | people[0]['x']['y'] | people|map(attribute='x.y', default='?')|list | none_value.a
s|trim ~ '|' ~ words.strip() ~ '|' ~ words.lstrip() ~ '|' ~ words.rstrip() ~ '|' ~ 'xxaxx'.strip('x') ~ 'abc'.rstrip('cb') ~ 'xxa'|trim('x')
words.split() | words.split(' ') | 'a,b,,c'.split(',') | 'a,b,c'.split(',', 1) | ' a b c '.split(none, 1) | 'a</t>b'.split('</t>')[-1] | ''.split() | ''.split(',')
'abc'.startswith('a') and 'abc'.endswith('bc') | 'ab c1'.upper()[1:] | 'ÀB'.lower() | 'ab cd-ef (x'|title | 'aB C'|capitalize
'abc' | upper | 'a-b-a'.replace('a', 'xx') | 'aaa'|replace('a', 'b', 2) | 5|replace('5', '6') | ', '.join(['a', 'b']) | 'abcb'.find('b') ~ 'ab'.find('z') ~ 'üx'.find('x')
l|length ~ d|count ~ s|length ~ missing|length | missing|default('d') ~ none_value|default('d') ~ ''|default('d', true) ~ missing|d ~ ''|d('x', boolean=true)
d|tojson | d|tojson(indent=2) | l|tojson ~ s|tojson ~ 1.0|tojson ~ none|tojson ~ (1, 2)|tojson | [[], {}, [[]]]|tojson(indent=4)
people|map(attribute='name')|join(',') | people|selectattr('age', 'equalto', 3)|map(attribute='name')|list | people|rejectattr('x', 'defined')|list|length | people|selectattr('x')|list|length
[1, 2, 3, 4]|select('odd')|list | [1, 2, 3, 4]|reject('gt', 2)|list | ['a', '', none]|select|list | ['a ', ' b']|map('trim')|list | [1, 2]|map('string')|list
['b', 'A', 'c']|sort ~ [3, 1, 2]|sort(reverse=true) ~ people|sort(attribute='name')|map(attribute='name')|list | ['b', 'A', 'B', 'b']|unique|list | ['b', 'B']|unique(case_sensitive=true)|list
l|first ~ l|last ~ e|first ~ 'abc'|first ~ 'abc'|last | [1, 2]|reverse|list | 'abc'|reverse | 'abc'|list | d|list | missing|items|list
('12'|int + 1) ~ 'x'|int ~ 'x'|int(5) ~ '3.7'|int ~ 3.7|int ~ -3.7|int ~ '2.5'|float ~ 'x'|float ~ 3|float ~ true|int ~ ' 4 '|int
'a\nb\n\nc'|indent | 'a\nb\n\nc'|indent(2, true) | 'a\nb\n\nc'|indent(2, blank=true) | ''|indent(2, true) | 5|string + '6' | '<a>'|safe
s is string and n is number and d is mapping and l is iterable and l is sequence and n is integer and f is float and true is boolean | missing is defined | missing is not defined | none_value is none | none_value is not none
true is true and 1 is true | false is false | d is string | s is mapping | 1.0 is integer | true is number | true is integer | missing is undefined or x
not s is string | s is not string or n is odd | 'x' if s is string else 'y' | (s is string) | 5 is in [1] | s is sequence | missing is iterable
range(3)|list | range(1, 4)|list | range(10, 0, -4)|list | range(0)|list | 'a' 'b' "c" | [1, 2,] | {'a': 1,}
strftime_now('%d %b %Y') | strftime_now('%Y-%m-%d %H:%M %A %B %j') | [1] if 1 else 2 | 3 in [1, 2, 3][1:] | 'ab'[0] ~ 'ab'[-1:] | (messages or [])|length | '%' ~ 5 % 3
dict(a=1, b='x') ~ dict({'a': 1}, b=n) ~ dict([('x', 1), 'yz'], x=2) ~ dict().a | d|tojson(separators=(',', ':')) | d|tojson(indent=2, sort_keys=true, separators=[';', '=']) | s|tojson(ensure_ascii=true) ~ 'ž'|tojson(true)
d|tojson(indent='\t') ~ d|tojson(indent=0) ~ []|tojson(indent=-1) | {2: 1, none: 's', true: 2.5, 3.0: ()}|tojson | {'b': 1, 'a': {'d': 2, 'c': 3}}|tojson(sort_keys=true) | {0: 'zero', 'x': 'y', none: 1, (1, 2): 3}
{0: 'zero'}[0] ~ {1.0: 'one'}[true] ~ {(1, 'a'): 'pair'}[(1, 'a')] ~ {2: 1}['2'] ~ {2: 1}.get(2) ~ (2 in {2: 1}) | {1: 2} == {1.0: 2} | {'a': 1, 'a': 2} | {1: 'a', 0: 'b'}|dictsort | {3: 1} is mapping
(1,) ~ (1, 'b') ~ () ~ (1, 2)[::-1] ~ (1, 2)[1:] ~ ((1, 2) + (3,)) ~ (1, 2) * 2 ~ (1, [2])|length | (1, 2) == [1, 2] or (1, 2) == (1, 2) and (1,) != (2,) | d.items()|list ~ d|dictsort ~ d|items|list ~ d.items()|length ~ d.keys()|length
[missing] ~ [missing, 1]|length ~ {'a': missing} ~ [missing]|first ~ [missing, none]|select('defined')|list | [0] * 3 ~ 3 * 'ab' ~ 2 * [1, 's'] ~ [] * 5 ~ 'a' * true | [[1, 2], [3]].0.1 ~ l.0 ~ d.a.1.x ~ (1.5)|string ~ people.2.name ~ s.0
's' if l|select('string') else 't' | e|select|list ~ ('true' if e|map('upper') else 'false') ~ ('true' if e|reverse else 'false') ~ ('true' if d.keys() else 'false') ~ ('true' if {}.items() else 'false') | ('a' if range(0) else 'b') ~ range(5)[2] ~ range(5)|last ~ range(5)|length
d.items is callable ~ range is callable ~ d.b is callable ~ range is defined ~ (raise_exception is defined) ~ dict is defined ~ caller is defined ~ namespace is mapping | namespace({'a': 1}, b=2).a ~ namespace(a=1)['a'] ~ namespace(a=1).b | 'ab'.upper is defined
range(*[1, 4])|list ~ dict(**{'k': 1}) ~ 'a,b,c'.split(*(',', 1)) ~ range(0, *(9, 3))|list ~ 'x-y'.replace(*['-', '+']) | ['b', 'a']|sort(**{'reverse': true}) | 'a' ~ -1|abs ~ --2 ~ +3 ~ -f ~ -true ~ (not 1) ~ 1e3 ~ 1E-2
'aXbX'|replace('X', '') ~ '  x '|trim|length ~ l|first is number ~ [1, 2, 3]|last ~ ''|first is defined ~ {}|last is undefined ~ d|first ~ [[1, 2], [3, 4]]|map('last')|join('-') | ['x', 'y']|map('replace', 'x', 'z')|join | people|map(attribute='name')|map('lower')|map('title')|list
"%s" == '%s' | (n, f)[1] | not n == 7 | not (n == 7) or true | 1 if missing else 2 | {'x': {'y': [1, 2]}}.x.y[-1] | [[1, 2], [3]]|map('first')|list | s|length > 3 and s|trim != s | 5|string|length | [1, [2]] == [1.0, [2]]
"""
ERRORS = r"""
missing.x | missing + 'a' | 'a' + 1 | none + 1 | 1 / 0 | 5 % 0 | missing() | s() | d.missing.x | [1] + 'a' | {}['a']['b'] | 1 < 'a' | none|length | none|join
missing|tojson | 'a'|int(base=1, foo=2) | 1 in 2 | range() | range(1000000)|list | s.nothing() | 'a' ~ (1).x.y | 5[0][0] | [3, 'a']|sort | '' * 5 + 1 | loop.index
raise_exception('it says ' ~ n) | ['a'] * 99999999999 | l[0:5:0] | s|replace('a') | x.y.z | s[::0] | people|map('nothing')|list | {[]: 1} | ''.split('')
"""

# Statements and whitespace, over VALUES and VARIABLES.
STATEMENTS = [
    "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }}{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}",
    "{% for x in e %}a{% else %}none{% endfor %}{% for x in l %}{% else %}none{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }},{% endfor %}{% for k in d %}{{ k }}{% endfor %}{% for c in 'aé' %}[{{ c }}]{% endfor %}",
    "{% for p in people if p.age == 3 %}{{ loop.index }}{{ p.name }}{% if not loop.last %}, {% endif %}{% endfor %}",
    "{% for p in people|selectattr('age', 'gt', 2) %}{{ p.name }}{% endfor %}{% for x in missing %}x{% endfor %}",
    "{% for (a, b) in [(1, 2), [3, 4]] %}{{ a }}{{ b }}{% endfor %}{% for x in [1, 2] + [3] %}{{ x }}{% endfor %}",
    "{% set x = 1 %}{% for i in range(3) %}{{ x }}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}",
    "{% set ns = namespace(n=0, found=false) %}{% for i in range(4) %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}{{ ns.found }}{{ ns.missing }}",
    "{% for i in range(5) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "{% for i in range(3) %}{% for j in range(3) %}{% if j > i %}{% break %}{% endif %}{{ i }}{{ j }} {{ loop.index }}{% endfor %}{{ loop.index }};{% endfor %}",
    "{% if n == 1 %}a{% elif n == 7 %}b{% elif n == 8 %}c{% else %}d{% endif %}{% if missing %}{% else %}e{% endif %}",
    "{% macro m(a, b='d', c=a) %}<{{ a }}{{ b }}{{ c }}>{% endmacro %}{{ m(1) }}{{ m(1, c=3) }}{{ m(b=2, a=0) }}{{ m() }}{{ m(1)|length }}",
    "{% macro f(x) %}{% if x > 0 %}{{ x }}{{ f(x - 1) }}{% endif %}{% endmacro %}{{ f(4) }}",
    "{% set v = 1 %}{% macro g() %}{{ v }}{{ n }}{% endmacro %}{% set v = 2 %}{{ g() }}{% for v in [9] %}{{ g() }}{% endfor %}",
    "{% macro h(items) %}{% for i in items %}{% if i is string %}{{ i }}{% else %}({{ h(i) }}){% endif %}{% endfor %}{% endmacro %}{{ h(['a', ['b', ['c']], 'd']) }}",
    "a{# comment #}b{#- c -#}  d {#+ e +#}\n f{# x #}\n g",
    "  {% if true %}\n  a\n  {% endif %}\n  b\n\n  {{ n }}\n  c\n",
    "  {%- if true %}  a\n {%+ if true %}b{% endif +%}\n{% endif %}\n",
    "x\n  {%- set y = 1 -%}\n  z {{- y -}} \n w {{ y }}\n",
    "\n\n{% set q = 2 %}\n\n{{ q }}\n\n",
    "{{ '{{' }}{{ \"}}\" }}{{ {'a': {'b': 1}}.a.b }}{{ {'a': {}} }}",
    "a\r\nb\rc{% if 1 %}\r\nd{% endif %}",
    "\t{% if 1 %}\t\n\tx{% endif %}\t{# c #}\n",
    "{% for x in [1, 2] %}\n    {{- x }}\n{% endfor %}\n.",
    "{{ 1 }} {{- 2 }} {{ 3 -}} 4 {{+ 5 }}",
    "{% set s2 = 'a' ~ 'b' %}{{ s2 }}{% set m2 = messages[1:] %}{{ m2|length }}{% set d2 = {'k': [1]} %}{{ d2.k[0] }}",
    "{% for m in messages %}{% set role = m['role'] %}{{ role[0] }}{% endfor %}{{ role }}",
    "{% for m in messages[::-1] %}{% set i = messages|length - 1 - loop.index0 %}{{ i }}{{ m.role[0] }}{% endfor %}",
    "x{% generation %}a{% endgeneration %}b{% for m in messages %}{% generation %}{{ loop.index }}{% endgeneration %}|{% endfor %}",
    "é{% generation %}ü{{ s }}{% set inside = 1 %}{% endgeneration %}{{ inside }}",
    "{% if messages is defined and messages[0].role == 'system' and messages[0].content is string %}{{ messages[0].content|trim }}{% endif %}",
    "{% set content = messages[5].content %}{% if '</think>' in content %}{{ content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') }}|{{ content.split('</think>')[-1].lstrip('\\n') }}{% endif %}",
    "{% if tools is not none and tools %}{{ tools[0].function.parameters.properties.items()|list|length }}{% endif %}{{ documents is none }}",
    "{% if n %}{% macro m(a) %}<{{ a }}{{ n }}>{% endmacro %}{% endif %}{{ m(1) }}{% for x in [5] %}{% macro k() %}[{{ x }}]{% endmacro %}{{ k() }}{% endfor %}{{ k is defined }}",
    "{% macro a(x, y=2) %}a{{ x }}{{ y }}{% endmacro %}{% macro b(x, y='') %}b{{ x }}{{ y }}{% endmacro %}{% set both = [a, b] %}{% for f in both %}{{ f(*[1]) }}{{ f(**{'y': 4, 'x': 3}) }}{{ f(*(5,), **{'y': 6}) }}{{ both[0](7, y=8) }};{% endfor %}",
    "{% macro box(title) %}[{{ title }}: {{ caller() }}]{{ caller()|length }}{% endmacro %}{% call box('t') %}in {{ n }}{% endcall %}{% for x in [1, 2] %}{% call box(title=x) %}{{ x }}{% endcall %}{% endfor %}",
    "{% macro each(items) %}{% for i in items %}{{ caller(i, loop.index) }}{% endfor %}{% endmacro %}{% call(item, at, more='-') each(l) %}{{ at }}={{ item }}{{ more }}{% endcall %}",
    "{% macro outer(k) %}{% set o = namespace(f=caller()) %}{% if k %}{% call outer(k - 1) %}<{{ k }}{% endcall %}{% endif %}{{ o.f }}|{{ caller() }}{% endmacro %}{% call outer(2) %}top{% endcall %}",
    "{% macro low() %}({{ caller() }}){% endmacro %}{% macro high() %}{% call low() %}{{ caller is defined }}{% endcall %}{% endmacro %}{% call high() %}x{% endcall %}",
    "{% macro c() %}{{ caller is defined }}{{ caller }}{% endmacro %}{{ c() }}",
    "{% set ns = namespace(n=0) %}{% macro add(space, by) %}{% set space.n = space.n + by %}{% set ns.last = by %}{% endmacro %}{{ add(ns, 2) }}{{ add(ns, 3) }}{{ ns.n }}{{ ns.last }}{% set other = ns %}{% set other.n = 'x' %}{{ ns.n }}",
    "{% for x in l %}{% macro q() %}{{ loop.index }}{% endmacro %}{% if x is string %}{{ q() }}{% continue %}{% endif %}-{% endfor %}",
    "{% set gen = l|select('string') %}{% for x in gen %}{{ x }}{% endfor %};{% for x in gen %}{{ x }}{% endfor %}{% set pairs = d.items() %}{% for p in pairs %}{{ p[0] }}{% endfor %}{% for k, v in pairs %}{{ k }}{% endfor %}",
    "{% set table = {0: 'none', 512: 'half', 1024: 'all'} %}{% for k, v in table|dictsort %}{% if n * 100 <= k %}{{ v }}{% break %}{% endif %}{% endfor %}{{ table[512] }}",
    "{{ messages|selectattr('role', 'equalto', 'user')|list|length }}{{ messages|rejectattr('tool_calls', 'undefined')|list|length }}{{ (messages|last).content }}",
]
STATEMENT_ERRORS = ["{% for x in 5 %}{% endfor %}", "{% set a, b = [1] %}", "{{ messages[0].content.x.y }}", "{% if %}", "{{ }}", "{% for x in l %}", "{{ 1", "{% if 1 %}{% endfor %}", "{% nothing %}",
                    "{{ 'a }}", "{# x", "{{ 1 | nothing }}", "{{ 1 is nothing }}", "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{% endmacro %}{{ m(b=2) }}", "{{ (1 }}", "{{ [1 }}",
                    "{% set x.y = 1 %}", "{{ 1 2 }}", "{% endif %}", "{% else %}", "{{ messages['a'].b }}", "{% macro r(x) %}{{ r(x) }}{% endmacro %}{{ r(1) }}",
                    "{% macro v() %}{{ caller() }}{% endmacro %}{{ v() }}", "{% macro w() %}{% endmacro %}{% call w() %}{% endcall %}", "{% call n() %}{% endcall %}", "{% call 5 %}{% endcall %}", "{{ range(*5) }}", "{{ dict(**{1: 2}) }}", "{{ [range]|tojson }}",
                    "{{ e|select|tojson }}", "{{ e|map('upper')|length }}", "{{ {[1]: 2} }}", "{{ -'a' }}", "{{ [1] + (2,) }}", "{{ {(1, 2): 3}|tojson }}", "{{ {1: 2, 'a': 3}|tojson(sort_keys=true) }}", "{{ [missing]|tojson }}"]

CHATML_TOOLS = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\\n\\n' }}
    {%- endif %}
    {{- "# Tools\\n\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools>{\\"name\\": <name>}<|im_end|>\\n" }}
{%- else %}
    {%- if messages[0].role == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning_content = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index and (loop.last or (not loop.last and reasoning_content)) %}
            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and content) or (not loop.first) %}
                    {{- '\\n' }}
                {%- endif %}
                {%- if tool_call.function %}
                    {%- set tool_call = tool_call.function %}
                {%- endif %}
                {{- '<tool_call>\\n{"name": "' }}
                {{- tool_call.name }}
                {{- '", "arguments": ' }}
                {%- if tool_call.arguments is string %}
                    {{- tool_call.arguments }}
                {%- else %}
                    {{- tool_call.arguments | tojson }}
                {%- endif %}
                {{- '}\\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' }}
        {{- content }}
        {{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
"""
DATED_TOOLS = """{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not tools_in_user_message is defined %}
    {%- set tools_in_user_message = true %}
{%- endif %}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "26 Jul 2024" %}
    {%- endif %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}

{#- The system message comes first, so it is taken out here. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none %}
    {{- "Environment: ipython\\n" }}
{%- endif %}
{{- "Today Date: " + date_string + "\\n\\n" + system_message + "<|eot_id|>" }}
{%- if tools_in_user_message and not tools is none %}
    {%- if messages | length != 0 %}
        {%- set first_user_message = messages[0]['content']|trim %}
        {%- set messages = messages[1:] %}
    {%- else %}
        {{- raise_exception("Cannot put tools in the first user message when there's no first user message!") }}
    {%- endif %}
    {{- '<|start_header_id|>user<|end_header_id|>\\n\\n' -}}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
    {{- first_user_message + "<|eot_id|>"}}
{%- endif %}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("This model only supports single tool-calls at once!") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}
        {{- '{"name": "' + tool_call.name + '", ' }}
        {{- '"parameters": ' }}
        {{- tool_call.arguments | tojson }}
        {{- "}" }}
        {%- for arg_name, arg_val in tool_call.arguments | items %}
            {{- arg_name + '="' + arg_val|string + '"' }}
            {%- if not loop.last %}
                {{- ", " }}
            {%- endif %}
        {%- endfor %}
        {{- "<|eot_id|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""
INSTRUCT = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}

{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or message.role == "tool_results" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("After the optional system message, conversation roles must alternate user/assistant/user/assistant/...") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}

{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[AVAILABLE_TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}
                        {{- '"' + key + '": "' + val + '"' }}
                    {%- else %}
                        {{- '"' + key + '": ' + val|tojson }}
                    {%- endif %}
                    {%- if not loop.last %}
                        {{- ", " }}
                    {%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {%- if not loop.last %}
                    {{- ", " }}
                {%- else %}
                    {{- "]" }}
                {%- endif %}
            {%- endfor %}
            {{- "[/AVAILABLE_TOOLS]" }}
        {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- "[TOOL_CALLS] [" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function|tojson %}
            {{- out[:-1] }}
            {{- ', "id": "x"}' }}
            {%- if not loop.last %}
                {{- ", " }}
            {%- else %}
                {{- "]" + eos_token }}
            {%- endif %}
        {%- endfor %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- elif message["role"] == "tool_results" or message["role"] == "tool" %}
        {%- if message.content is defined and message.content.content is defined %}
            {%- set content = message.content.content %}
        {%- else %}
            {%- set content = message.content %}
        {%- endif %}
        {{- '[TOOL_RESULTS] {"content": ' + content|string + "}[/TOOL_RESULTS]" }}
    {%- else %}
        {{- raise_exception("Only user and assistant roles are supported, with the exception of an initial optional system message!") }}
    {%- endif %}
{%- endfor %}
"""
TURNS = """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '
' + message['content'] | trim + '<end_of_turn>
' }}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model
'}}{% endif %}"""
PARTS = """{{ bos_token }}
{%- set first_user_prefix = "" -%}
{%- set loop_messages = messages -%}
{%- for message in loop_messages -%}
    {%- set role = "model" if message['role'] == 'assistant' else message['role'] -%}
    {{ '<start_of_turn>' + role + '\\n' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}
                {{ '<start_of_image>' }}
            {%- elif item['type'] == 'text' -%}
                {{ item['text'] | trim }}
            {%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception("Invalid content type") }}
    {%- endif -%}
    {{ '<end_of_turn>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<start_of_turn>model
'}}
{%- endif -%}
"""
SHORT_TEMPLATES = [
    "{% for message in messages %}\n{% if message['role'] == 'user' %}\n{{ '<|user|>\n' + message['content'] + eos_token }}\n{% elif message['role'] == 'system' %}\n{{ '<|system|>\n' + message['content'] + eos_token }}\n{% elif message['role'] == 'assistant' %}\n{{ '<|assistant|>\n'  + message['content'] + eos_token }}\n{% endif %}\n{% if loop.last and add_generation_prompt %}\n{{ '<|assistant|>' }}\n{% endif %}\n{% endfor %}",
    "{% for message in messages %}{% if message['role'] == 'system' and message['content'] %}{{'<|system|>\n' + message['content'] + '<|end|>\n'}}{% elif message['role'] == 'user' %}{{'<|user|>\n' + message['content'] + '<|end|>\n'}}{% elif message['role'] == 'assistant' %}{{'<|assistant|>\n' + message['content'] + '<|end|>\n'}}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% else %}{{ eos_token }}{% endif %}",
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n'}}{% if message['role'] == 'assistant' %}{% generation %}{{ message['content'] + '<|im_end|>' }}{% endgeneration %}{% else %}{{ message['content'] + '<|im_end|>' }}{% endif %}{{ '\n' }}{% endfor %}",
    "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{% set ns = namespace(is_first=false, is_tool=false, is_output_first=true, system_prompt='') %}{%- for message in messages %}{%- if message['role'] == 'system' %}{% set ns.system_prompt = message['content'] %}{%- endif %}{%- endfor %}{{bos_token}}{{ns.system_prompt}}{%- for message in messages %}{%- if message['role'] == 'user' %}{%- set ns.is_tool = false -%}{{'<｜User｜>' + message['content']}}{%- endif %}{%- if message['role'] == 'assistant' and message['content'] is not none %}{%- if ns.is_tool %}{{'<｜tool▁outputs▁end｜>' + message['content'] + '<｜end▁of▁sentence｜>'}}{%- set ns.is_tool = false -%}{%- else %}{% set content = message['content'] %}{% if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}{{'<｜Assistant｜>' + content + '<｜end▁of▁sentence｜>'}}{%- endif %}{%- endif %}{%- if message['role'] == 'tool' %}{%- set ns.is_tool = true -%}{%- if ns.is_output_first %}{{'<｜tool▁outputs▁begin｜>' + message['content']}}{%- set ns.is_output_first = false %}{%- else %}{{'\\n' + message['content']}}{%- endif %}{%- endif %}{%- endfor -%}{% if add_generation_prompt and not ns.is_tool %}{{'<｜Assistant｜>'}}{% endif %}",
    "{%- macro render_type(spec, depth=0) -%}\n    {%- if spec.type == 'object' -%}\n        {{- '{' }}\n        {%- for name, each in spec.properties.items() -%}\n            {{- name + ('' if name in (spec.required or []) else '?') + ': ' }}{{ render_type(each, depth=depth + 1) }}\n            {%- if each.default is defined -%}\n                {{- ' = ' ~ each.default|tojson }}\n            {%- endif -%}\n            {{- ', ' if not loop.last }}\n        {%- endfor -%}\n        {{- '}' ~ depth }}\n    {%- else -%}\n        {{- {'string': 'str', 'integer': 'int'}[spec.type]|default('any') }}\n    {%- endif -%}\n{%- endmacro -%}\n{%- if tools %}{%- for tool in tools %}\n{{ tool.function.name }}{{ '(' ~ render_type(tool.function.parameters) ~ ')' }}\n{% endfor %}{% endif %}{{ messages|map(attribute='role')|unique|sort|join(' ') }}",
]


def record(template, variables):
    compiled = _compile_jinja_template(template)
    compiled.globals["strftime_now"] = NOW.strftime
    rest = {key: value for key, value in variables.items() if key not in {"messages", "tools", "documents", "add_generation_prompt"}}
    text, spans = _render_with_assistant_indices(
        compiled, variables.get("messages"), variables.get("tools"), variables.get("documents"), variables.get("add_generation_prompt"), **rest
    )
    return text, [list(span) for span in spans]


def row(template, variables):
    try:
        text, spans = record(template, variables)
        return {"template": template, "text": text, **({"spans": spans} if spans else {})}
    except RecursionError:
        return {"template": template, "error": "RecursionError"}
    except Exception as error:
        return {"template": template, "error": f"{type(error).__name__}: {error}"}


def main():
    several = {**VARIABLES, **VALUES}
    groups = {"values": several, "chat": VARIABLES, "plain": PLAIN, "no_tools": {**VARIABLES, "messages": CHAT[:2] + CHAT[5:], "tools": None}}
    rows = [{"variables": groups}]
    expressions = [each for line in EXPRESSIONS.strip().split("\n") for each in line.split(" | ")]
    errors = [each for line in ERRORS.strip().split("\n") for each in line.split(" | ")]
    for template in [f"{{{{ {each} }}}}" for each in expressions] + STATEMENTS:
        rows.append({"use": "values", **row(template, several)})
        assert "text" in rows[-1], rows[-1]
    for template in [f"{{{{ {each} }}}}" for each in errors] + STATEMENT_ERRORS:
        rows.append({"use": "values", **row(template, several)})
        assert "error" in rows[-1], rows[-1]
    for template in [CHATML_TOOLS, DATED_TOOLS, INSTRUCT, TURNS, PARTS, *SHORT_TEMPLATES]:
        rows += [{"use": use, **row(template, groups[use])} for use in ("chat", "plain", "no_tools")]
    write_lines("chat_templates.jsonl", rows)


main()
