#include "app/program.hpp"

int main(int argc, char** argv) { return mylos::app::run_program({argv + 1, argv + argc}); }
