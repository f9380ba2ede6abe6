# How CMake compiles C++ for the tests' virtual environment: with few optimisations and no debugging information.
# The planner behind the extra `textworld` then takes one minute of CPU instead of two.
set(CMAKE_CXX_COMPILE_OBJECT "<CMAKE_CXX_COMPILER> <DEFINES> <INCLUDES> <FLAGS> -O1 -g0 -w -o <OBJECT> -c <SOURCE>")
