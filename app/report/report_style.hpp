#pragma once

namespace mylos::app {

/// The style sheet of a report, for light and dark mode, narrow and wide screens, and paper. Series use the colours of
/// Okabe and Ito (jfly.uni-koeln.de/color), which people with any colour vision can distinguish, darkened or lightened
/// to suit the background.
extern const char* const report_style;

}  // namespace mylos::app
