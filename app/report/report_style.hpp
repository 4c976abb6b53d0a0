#pragma once

namespace mylos::app {

/// The style sheet of a report: light and dark, narrow and wide, on paper. Series have the colours of Okabe and Ito
/// (jfly.uni-koeln.de/color), darker or lighter where the background asks for it, which people of any colour vision
/// tell apart.
extern const char* const report_style;

}  // namespace mylos::app
